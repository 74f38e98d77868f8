#include "unit.h"
void test_freestyle_background(void) {}
