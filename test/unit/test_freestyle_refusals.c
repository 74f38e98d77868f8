#include "unit.h"
void test_freestyle_refusals(void) {}
