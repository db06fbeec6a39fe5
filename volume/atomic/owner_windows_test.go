package atomic_test

import "testing"

func owner(*testing.T, string) int { return 0 }
