package procmem_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/agent/procmem"
)

// The program of the test continues to run in its own unmapped pages, on several threads.
func TestReleaseUnmapsTheProgram(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				unmapped, err := procmem.Release()
				if assert.NoError(t, err) {
					assert.Positive(t, unmapped)
				}
			}
		})
	}
	wg.Wait()
	_, err := procmem.Release()
	require.NoError(t, err)
}
