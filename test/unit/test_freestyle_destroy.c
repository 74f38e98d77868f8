#include "unit.h"
void test_freestyle_destroy(void) {}
