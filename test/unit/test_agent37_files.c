#include "unit.h"
void
test_agent37_files(void)
{
}
