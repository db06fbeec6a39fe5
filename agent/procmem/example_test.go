package procmem_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/agent/procmem"
)

// A process releases what its start has left behind.
func ExampleRelease() {
	_, err := procmem.Release()
	fmt.Println(err)

	// Output: <nil>
}
