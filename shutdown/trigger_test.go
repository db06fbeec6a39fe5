package shutdown_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/shutdown"
)

// A cloud reports when it reclaims the machine; it may be unavailable.
type cloud struct {
	mu    sync.Mutex // guards the fields below
	asked int
	away  bool
	taken time.Time
}

func (c *cloud) ask(context.Context) (bool, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.away {
		return false, time.Time{}, errors.New("the service is away")
	}
	return !c.taken.IsZero(), c.taken, nil
}

func (c *cloud) is(away bool, taken time.Time) (asked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.taken = away, taken
	return c.asked
}

func TestANoticeIsFoundByPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cloud)
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), triggers: []shutdown.Trigger{shutdown.Poll{Period: 10 * s, Query: c.ask}}}
		m.run()
		time.Sleep(25 * s)
		require.NoError(t, m.Err())
		assert.Equal(t, 3, c.is(false, time.Now().Add(20*s))) // reported at 30 s
		time.Sleep(10 * s)
		require.ErrorIs(t, m.Err(), shutdown.ErrShuttingDown)
		assert.Equal(t, []string{"30s kill web within 10", "31s kill dns within 5"}, m.lines("kill"), "they have half of their time")

		c.is(true, time.Time{}) // its last notice still applies
		time.Sleep(30 * s)
		require.ErrorIs(t, m.Err(), shutdown.ErrShuttingDown)

		c.is(false, time.Time{}) // also if it changed its mind meanwhile
		time.Sleep(time.Minute)
		require.NoError(t, m.Err())
	})
}

func TestAnEarlierDeadlineIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(cloud)
		var reported []time.Duration
		begun := time.Now()
		watching, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			assert.NoError(t, shutdown.Poll{Period: 10 * s, Query: c.ask}.Watch(watching, 0, func(n shutdown.Notice) {
				if n.Stopping {
					reported = append(reported, n.Deadline.Sub(begun))
				}
			}))
		})
		time.Sleep(5 * s) // between two polls
		for _, deadline := range []time.Duration{90 * s, 90*s - time.Millisecond, 100 * s, 50 * s} {
			c.is(false, begun.Add(deadline))
			time.Sleep(10 * s)
		}
		stop()
		wg.Wait()
		assert.Equal(t, []time.Duration{90 * s, 50 * s}, reported, "neither one that wavers nor one that is later")
	})
}

func TestASlowPollIsCanceledWhenTheAgentStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups}
		m.triggers = []shutdown.Trigger{shutdown.Poll{Query: func(ctx context.Context) (bool, time.Time, error) {
			<-ctx.Done()
			return false, time.Time{}, ctx.Err()
		}}}
		m.run() // it ends with the test
	})
}

func TestTriggerByHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: []*v1.Pod{podOf("web", 0, 30)}, takes: map[string]time.Duration{"web": 4 * s}}
		m.run()
		ask := func(method, path string) (int, string) {
			w := httptest.NewRecorder()
			m.manual.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			synctest.Wait()
			return w.Code, w.Body.String()
		}
		expect := func(method, path string, code int, body string) {
			t.Helper()
			gotCode, got := ask(method, path)
			assert.Equal(t, code, gotCode)
			assert.Equal(t, body+"\n", got)
		}
		expect(http.MethodGet, "/", 200, `{"stopping":false,"done":false}`)
		expect(http.MethodPut, "/", 405, "method must be GET, POST or DELETE")
		expect(http.MethodPost, "/?deadline=soon", 400, `deadline="soon": must be a duration, such as 90s`)
		expect(http.MethodPost, "/?deadline=-1s", 400, `deadline="-1s": must be a duration, such as 90s`)
		require.NoError(t, m.Err())
		expect(http.MethodDelete, "/", 200, `{"stopping":false,"done":false}`)

		m.begun = time.Now()
		expect(http.MethodPost, "/?deadline=15s", 202, `{"stopping":true,"done":false}`)
		assert.Equal(t, []string{"0s kill web within 10"}, m.lines("kill"))
		expect(http.MethodPost, "/?wait=true", 200, `{"stopping":true,"done":true}`)
		assert.Equal(t, 4*s, time.Since(m.begun))
		expect(http.MethodGet, "/", 200, `{"stopping":true,"done":true}`)
		expect(http.MethodDelete, "/", 200, `{"stopping":false,"done":false}`)
		require.NoError(t, m.Err())
	})
}

func TestASignalBeforeTheFirstWatchCounts(t *testing.T) {
	got := make(chan os.Signal, 1)
	got <- os.Interrupt
	ctx, stop := context.WithCancel(t.Context())
	var reported shutdown.Notice
	require.NoError(t, shutdown.Signals{Received: got}.Watch(ctx, 0, func(n shutdown.Notice) {
		reported = n
		stop()
	}))
	assert.True(t, reported.Stopping)
}

func TestWaitersAreNotifiedOfACancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, policy: twoGroups, all: webAndDNS(), takes: map[string]time.Duration{"web": time.Hour}}
		m.run()
		done := m.manual.Stop(time.Time{})
		synctest.Wait()
		m.manual.Cancel()
		<-done
		synctest.Wait()
		require.NoError(t, m.Err())
	})
}
