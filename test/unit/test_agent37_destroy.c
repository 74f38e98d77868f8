#include "unit.h"
void
test_agent37_destroy(void)
{
}
