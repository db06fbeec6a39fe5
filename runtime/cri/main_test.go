package cri_test

import (
	"os"
	"testing"

	"github.com/kubeparts/kubeparts/runtime/process"
)

func TestMain(m *testing.M) {
	if code, ok := process.Supervise(); ok { // a container of the process runtime
		os.Exit(code)
	}
	os.Exit(m.Run())
}
