package kubelet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

func TestRunComponents(t *testing.T) {
	failed := errors.New("failed")
	waits := func(ctx context.Context) error { <-ctx.Done(); return nil }
	hang := make(chan struct{})
	for name, tc := range map[string]struct {
		component stores.Component
		flush     time.Duration
		want      string
		took      time.Duration
	}{
		"until ctx is done":                {waits, time.Second, "", time.Hour + time.Second},
		"the flush is bounded":             {waits, time.Hour, "", time.Hour + 5*time.Second},
		"a component fails":                {func(context.Context) error { return failed }, time.Second, "failed", 0},
		"a component fails while it stops": {func(ctx context.Context) error { <-ctx.Done(); return failed }, 0, "failed", time.Hour},
		"a component hangs": {func(context.Context) error { <-hang; return nil }, time.Second,
			"components have not returned within 15s: kubelet.TestRunComponents.func4", time.Hour + 16*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hang = make(chan struct{})
				defer close(hang)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start := time.Now()
				err := runComponents(ctx, []stores.Component{waits, tc.component}, func(ctx context.Context) {
					select {
					case <-ctx.Done():
					case <-time.After(tc.flush):
					}
				})
				assert.Equal(t, tc.took, time.Since(start))
				if tc.want == "" {
					assert.NoError(t, err)
				} else {
					assert.EqualError(t, err, tc.want)
				}
			})
		})
	}
}
