package virtualkubelet

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestLogOptions(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	assert.Equal(t, &v1.PodLogOptions{}, logOptions(api.ContainerLogOpts{}))
	assert.Equal(t, &v1.PodLogOptions{
		Follow: true, Previous: true, Timestamps: true, TailLines: new(int64(1)), LimitBytes: new(int64(2)),
		SinceSeconds: new(int64(3)), SinceTime: new(metav1.NewTime(at)),
	}, logOptions(api.ContainerLogOpts{Follow: true, Previous: true, Timestamps: true, Tail: 1, LimitBytes: 2, SinceSeconds: 3, SinceTime: at}))
}

// terminal is an api.AttachIO with sizes alone.
type terminal struct {
	api.AttachIO
	sizes chan api.TermSize
}

func (terminal) Stdin() io.Reader              { return nil }
func (terminal) Stdout() io.WriteCloser        { return nil }
func (terminal) Stderr() io.WriteCloser        { return nil }
func (terminal) TTY() bool                     { return true }
func (t terminal) Resize() <-chan api.TermSize { return t.sizes }

// A size that is not received, and a channel that is not closed, leave no goroutine.
func TestSizesArePassedOnUntilTheCallReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		from := terminal{sizes: make(chan api.TermSize, 2)}
		from.sizes <- api.TermSize{Width: 80, Height: 24}
		from.sizes <- api.TermSize{Width: 81, Height: 25}
		s := streams(ctx, from)
		assert.True(t, s.TTY)
		assert.True(t, s.Stdin == nil && s.Stdout == nil && s.Stderr == nil)
		assert.Equal(t, runtime.TerminalSize{Width: 80, Height: 24}, <-s.Resize)
		cancel()

		closed := terminal{sizes: make(chan api.TermSize)}
		close(closed.sizes)
		streams(t.Context(), closed)
	})
}
