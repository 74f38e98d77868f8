#include "unit.h"
void
test_agent37_run(void)
{
}
