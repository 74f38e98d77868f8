#include "unit.h"
void test_freestyle_traps(void) {}
