#include "unit.h"
void test_freestyle_power(void) {}
