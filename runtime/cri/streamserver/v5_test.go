package streamserver

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime"
)

// endless is a number with endless digits.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 1<<20 {
		return 0, io.EOF
	}
	e.read += len(p)
	return copy(p, strings.Repeat("1", len(p))), nil
}

func TestASizeThatIsNoneIsReadToItsEndAndNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		more := new(endless)
		sizes := readSizes(t.Context(), io.MultiReader(strings.NewReader(strings.Repeat(`{"Width":80,"Height":24}`+"\n", 500)+`{"Width":`), more))
		for range 500 {
			assert.Equal(t, runtime.TerminalSize{Width: 80, Height: 24}, <-sizes)
		}
		synctest.Wait()
		assert.Greater(t, more.read, 1<<20, "the rest is read, so that the client does not block")
		select {
		case <-sizes:
			assert.Fail(t, "an invalid size was sent")
		default:
		}
	})
}
