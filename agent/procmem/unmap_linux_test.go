package procmem_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent/procmem"
)

// The program of the test continues to run in its own unmapped pages, on several threads. One
// call may find nothing to unmap because another has just done it.
func TestReleaseUnmapsTheProgram(t *testing.T) {
	unmapped, err := procmem.Release()
	require.NoError(t, err)
	assert.Positive(t, unmapped)

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				_, err := procmem.Release()
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
}
