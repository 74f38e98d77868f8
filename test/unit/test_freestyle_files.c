#include "unit.h"
void test_freestyle_files(void) {}
