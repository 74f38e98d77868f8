/*
 * libcurl.c
 *		What holds for libcurl in the whole process.
 */
#include "net/libcurl.h"

#include <curl/curl.h>
#include <malloc.h>
#include <time.h>

#include "libpq/pqsignal.h"

/* Allocators that wipe: request headers and bodies carry credentials. */
static void
wiping_free(void *pointer)
{
	if (pointer != NULL)
	{
		explicit_bzero(pointer, malloc_usable_size(pointer));
		free(pointer);
	}
}

static void *
wiping_realloc(void *pointer, size_t size)
{
	void *bigger;
	size_t old_size;

	if (pointer == NULL)
		return malloc(size);
	old_size = malloc_usable_size(pointer);
	if (size <= old_size && size >= old_size / 2)
		return pointer;
	bigger = malloc(size);
	if (bigger == NULL)
		return NULL;
	memcpy(bigger, pointer, Min(size, old_size));
	wiping_free(pointer);
	return bigger;
}

void
sbx_libcurl_initialize(void)
{
	static bool initialized = false;
	const curl_version_info_data *version;

	if (initialized)
		return;
	if (curl_global_init_mem(CURL_GLOBAL_ALL, malloc, wiping_free, wiping_realloc,
	                         strdup, calloc) != CURLE_OK)
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
		                errmsg("could not initialize libcurl")));

	version = curl_version_info(CURLVERSION_NOW);
	if (version->version_num < LIBCURL_VERSION_NUM)
		ereport(ERROR,
		        (errcode(ERRCODE_SYSTEM_ERROR), errmsg("libcurl is too old"),
		         errdetail("This library was built with libcurl %s, but %s was loaded.",
		                   LIBCURL_VERSION, version->version)));
	if ((version->features & CURL_VERSION_SSL) == 0 ||
	    (version->features & CURL_VERSION_ASYNCHDNS) == 0)
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
		                errmsg("libcurl %s cannot be used", version->version),
		                errdetail("It lacks TLS or asynchronous name resolution.")));
	initialized = true;
}

void
sbx_libcurl_describe(SbxLibcurlFacts *facts)
{
	const curl_version_info_data *version = curl_version_info(CURLVERSION_NOW);

	facts->version = version->version;
	facts->tls = version->ssl_version;
	if (version->ares != NULL)
		facts->resolver = "c-ares";
	else if (version->features & CURL_VERSION_ASYNCHDNS)
		facts->resolver = "threaded";
	else
		facts->resolver = "synchronous";
	facts->ca_file = version->cainfo;
}

void
sbx_libcurl_block_signals(sigset_t *saved)
{
	sigprocmask(SIG_SETMASK, &BlockSig, saved);
}

void
sbx_libcurl_restore_signals(const sigset_t *saved)
{
	sigprocmask(SIG_SETMASK, saved, NULL);
}

int64
sbx_libcurl_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
