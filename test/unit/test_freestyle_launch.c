#include "unit.h"
void test_freestyle_launch(void) {}
