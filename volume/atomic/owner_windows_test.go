package atomic_test

import (
	"os"
	"testing"
)

func owner(*testing.T, func(string) (os.FileInfo, error), string) int { return 0 }
