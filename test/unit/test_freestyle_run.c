#include "unit.h"
void test_freestyle_run(void) {}
