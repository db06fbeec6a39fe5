package dra_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// A driver that does not answer a call, or an API server that does not return one claim, delays no pod with
// other claims, and not the end of Run.
func TestADriverThatDoesNotAnswerDelaysNoOtherPod(t *testing.T) {
	for _, silent := range []string{"prepare d1", "unprepare d1", "get a"} {
		t.Run(silent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(claim("a", "d1", "p"), claim("b", "d2", "q"), claim("c", "d2", "r"))
				m := w.manager(t, nil)
				if silent == "unprepare d1" {
					require.NoError(t, m.PrepareResources(t.Context(), pod("p", "a")))
				}
				w.fault = func(ctx context.Context, call string) error {
					if strings.HasPrefix(call, silent) {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
				removed := map[types.UID]bool{"p": true}
				if silent == "unprepare d1" {
					_ = m.Retain(t.Context(), func(uid types.UID) bool { return !removed[uid] })
				} else {
					go func() { _ = m.PrepareResources(ctx, pod("p", "a")) }()
				}
				synctest.Wait()

				begun := time.Now()
				require.NoError(t, m.PrepareResources(ctx, pod("q", "b")))
				require.NoError(t, m.UnprepareResources(ctx, "q"))
				require.NoError(t, m.PrepareResources(ctx, pod("r", "c")))
				removed["r"] = true // while no worker has it
				_ = m.Retain(t.Context(), func(uid types.UID) bool { return !removed[uid] })
				synctest.Wait()
				assert.False(t, m.MayHaveResources("r"), "it is unprepared at once")
				assert.Zero(t, time.Since(begun))
				cancel()
				wg.Wait()
				assert.Zero(t, time.Since(begun))
			})
		})
	}
}
