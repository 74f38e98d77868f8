#include "unit.h"
void test_freestyle_exhaustion(void) {}
