package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/podsource"
)

const nodeName = "node-1"

// newPod returns a pod that is bound to our node.
func newPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}},
		Spec:       v1.PodSpec{NodeName: nodeName, Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
}

// connect returns clients of the server, in protobuf as in life.
func connect(t testing.TB, api *apitest.Server) *client.Connection {
	t.Helper()
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	require.NoError(t, err)
	return conn
}

func newPods(t testing.TB, api *apitest.Server) *client.Pods {
	t.Helper()
	pods, err := client.NewPods(client.PodsConfig{Client: connect(t, api).API, NodeName: nodeName})
	require.NoError(t, err)
	return pods
}

// A taker records the sets that a source delivers.
type taker struct {
	mu   sync.Mutex
	sets [][]string
}

func (s *taker) set(pods []*v1.Pod) {
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name+" "+string(pod.UID))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = append(s.sets, names)
}

func (s *taker) last() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sets) == 0 {
		return nil
	}
	return s.sets[len(s.sets)-1]
}

func (s *taker) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sets)
}

// running runs a component until the test ends, in its bubble.
func running(t *testing.T, run func(context.Context) error) {
	t.Helper()
	stopsWithin(t, time.Second, run)
}

// stopsWithin runs a component until the test ends, and fails the test if it takes
// longer than limit to return.
func stopsWithin(t *testing.T, limit time.Duration, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			assert.NoError(t, err)
		case <-time.After(limit):
			t.Errorf("Run did not return within %v of the end of its context", limit)
			<-done
		}
	})
}

// following runs pods, which are synced when it returns.
func following(t *testing.T, pods *client.Pods) *taker {
	t.Helper()
	took := new(taker)
	running(t, func(ctx context.Context) error { return pods.Run(ctx, took.set) })
	synctest.Wait()
	return took
}

var _ podsource.PodSource = (*client.Pods)(nil)

func TestOnlyTheNodesPodsAreFollowed(t *testing.T) { // src-33
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("watch-list %v", watchList), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				other := newPod("other")
				other.Spec.NodeName = "node-2"
				api := &apitest.Server{NoWatchList: !watchList}
				api.Put(newPod("web"), other)
				took := following(t, newPods(t, api))
				assert.Equal(t, [][]string{{"web uid-1"}}, took.sets, "one set, whole (src-34)")

				api.Put(newPod("db"))
				synctest.Wait()
				assert.Equal(t, []string{"db uid-3", "web uid-1"}, took.last())
				other.Namespace = "elsewhere"
				api.Put(other)
				api.Remove("pods", "prod", "web")
				synctest.Wait()
				assert.Equal(t, []string{"db uid-3"}, took.last())

				for _, c := range api.Calls() {
					assert.Equal(t, "spec.nodeName="+nodeName, c.Selector, c.String())
					assert.True(t, c.Protobuf)
				}
				want := 1
				if !watchList {
					want = 3 // refused, list, watch
				}
				assert.Len(t, api.Calls(), want)
			})
		})
	}
}

func TestPodsOfOtherNodesAreDroppedIfTheServerIgnoresSelectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := newPod("other")
		other.Spec.NodeName = "node-2"
		api := new(apitest.Server)
		api.Put(newPod("web"), other)
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{Wrap: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				q := r.URL.Query()
				q.Del("fieldSelector")
				r.URL.RawQuery = q.Encode()
				return next.RoundTrip(r)
			})
		}})
		require.NoError(t, err)
		pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: nodeName})
		require.NoError(t, err)
		took := following(t, pods)
		assert.Equal(t, []string{"web uid-1"}, took.last())
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server rejects a watch-list as invalid, or, if its etcd is an old one, with a
// different message.
func TestAServerWithoutWatchListsIsListed(t *testing.T) {
	for _, code := range []int{400, 403, 405, 410, 422, 500, 504} {
		synctest.Test(t, func(t *testing.T) {
			faults := new(switchboard)
			api := &apitest.Server{Fault: faults.fault}
			api.Put(newPod("web"))
			first := true
			faults.set(func(c apitest.Call) apitest.Fault {
				if c.Verb == "watch" && first {
					first = false
					return apitest.Fault{Code: code, Message: "a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled"}
				}
				return apitest.Fault{}
			})
			took := following(t, newPods(t, api))
			assert.Equal(t, []string{"web uid-1"}, took.last(), "%d", code)
			assert.Len(t, api.Calls("list"), 1)
		})
	}
}

// With virtual-kubelet everything is keyed by name, so that the two UIDs mix
// .
func TestAPodRecreatedUnderItsNameIsAnotherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(newPod("web"))
		pods := newPods(t, api)
		took := following(t, pods)
		for i := range 50 {
			api.Remove("pods", "prod", "web")
			api.Put(newPod("web"))
			if i%7 == 0 {
				api.DropWatches()
			}
			if i%11 == 0 {
				api.Compact()
			}
			pass(5 * time.Second)
			assert.Equal(t, []string{fmt.Sprintf("web uid-%d", i+2)}, took.last())
			assert.Nil(t, pods.Pod(types.UID(fmt.Sprintf("uid-%d", i+1))))
			require.NotNil(t, pods.Pod(types.UID(fmt.Sprintf("uid-%d", i+2))))
		}
	})
}

// With virtual-kubelet a pod whose deletion fell into a gap of the watch stays
// until the next start.
func TestChangesDuringABrokenWatchAreDelivered(t *testing.T) {
	for name, gap := range map[string]func(api *apitest.Server){
		"dropped":      func(api *apitest.Server) { api.DropWatches() },
		"410 Gone":     func(api *apitest.Server) { api.DropWatches(); api.Compact() },
		"expired open": func(api *apitest.Server) { api.Compact() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				down := false
				api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault {
					mu.Lock()
					defer mu.Unlock()
					return apitest.Fault{Refuse: down}
				}}
				turn := func(to bool) { mu.Lock(); defer mu.Unlock(); down = to }
				api.Put(newPod("web"), newPod("db"))
				took := following(t, newPods(t, api))

				turn(true)
				api.DropWatches()
				pass(2 * time.Minute)
				api.Put(newPod("new"))
				api.Remove("pods", "prod", "web")
				gap(api)
				assert.Equal(t, []string{"db uid-2", "web uid-1"}, took.last(), "the last set stays")
				turn(false)
				pass(time.Minute)
				assert.Equal(t, []string{"db uid-2", "new uid-3"}, took.last())
				for _, set := range took.sets {
					assert.GreaterOrEqual(t, len(set), 2, "never half a set: %v", took.sets)
				}
			})
		})
	}
}

func TestNoSetIsDeliveredBeforeTheFirstList(t *testing.T) { // src-34
	synctest.Test(t, func(t *testing.T) {
		api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault { return apitest.Fault{Refuse: true} }}
		pods := newPods(t, api)
		took := following(t, pods)
		pass(10 * time.Minute)
		assert.Zero(t, took.count())
		assert.False(t, pods.Synced())
	})
}

func TestAStreamThatBreaksHalfWayIsNoSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		for i := range 20 {
			api.Put(newPod(fmt.Sprintf("web-%02d", i)))
		}
		tries := 0
		var mu sync.Mutex
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{Wrap: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				answer, err := next.RoundTrip(r)
				mu.Lock()
				defer mu.Unlock()
				if tries++; err == nil && tries <= 3 {
					answer.Body = &short{answer.Body, 3000}
				}
				return answer, err
			})
		}})
		require.NoError(t, err)
		pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: nodeName})
		require.NoError(t, err)
		took := following(t, pods)
		pass(time.Minute)
		require.NotEmpty(t, took.sets)
		for _, set := range took.sets {
			assert.Len(t, set, 20)
		}
	})
}

// Persistent failures are tried again, and not in a hurry.
func TestAFailingWatchIsNoHotLoop(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"forbidden":             {Code: http.StatusForbidden},
		"unauthorized":          {Code: http.StatusUnauthorized},
		"internal error":        {Code: http.StatusInternalServerError},
		"unavailable":           {Code: http.StatusServiceUnavailable},
		"throttled":             {Code: http.StatusTooManyRequests},
		"throttled, wait a bit": {Code: http.StatusTooManyRequests, RetryAfter: 5},
		"gone":                  {Code: http.StatusGone},
		"not found":             {Code: http.StatusNotFound},
		"refused":               {Refuse: true},
		"no answer":             {Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now := fault
				api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault { mu.Lock(); defer mu.Unlock(); return now }}
				api.Put(newPod("web"))
				took := following(t, newPods(t, api))
				pass(5 * time.Minute)
				api.Forget()
				pass(10 * time.Minute)
				perMinute := float64(len(api.Calls())) / 10
				assert.LessOrEqual(t, perMinute, 13.0)
				assert.Greater(t, perMinute, 0.3)
				t.Logf("%.1f calls per minute", perMinute)
				assert.Zero(t, took.count())

				mu.Lock()
				now = apitest.Fault{}
				mu.Unlock()
				pass(3 * time.Minute)
				assert.Equal(t, []string{"web uid-1"}, took.last(), "recovered")
			})
		})
	}
}

func TestPodsAreTakenWhenTheNodeIsReady(t *testing.T) { // src-33
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(newPod("web"))
		ready := make(chan struct{})
		pods, err := client.NewPods(client.PodsConfig{Client: connect(t, api).API, NodeName: nodeName, Ready: ready})
		require.NoError(t, err)
		took := following(t, pods)
		pass(time.Hour)
		assert.Empty(t, api.Calls())
		close(ready)
		synctest.Wait()
		assert.Equal(t, []string{"web uid-1"}, took.last())
	})
}

func TestASlowTakerGetsTheLastSet(t *testing.T) { // src-11
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		pods := newPods(t, api)
		took := new(taker)
		running(t, func(ctx context.Context) error {
			return pods.Run(ctx, func(list []*v1.Pod) {
				time.Sleep(time.Second)
				took.set(list)
			})
		})
		for i := range 100 {
			api.Put(newPod(fmt.Sprintf("web-%02d", i)))
			pass(50 * time.Millisecond)
		}
		pass(5 * time.Second)
		assert.Len(t, took.last(), 100)
		assert.Less(t, took.count(), 12, "several changes make one set")
	})
}

func TestConfigOfPods(t *testing.T) {
	_, err := client.NewPods(client.PodsConfig{NodeName: nodeName})
	require.EqualError(t, err, "client: PodsConfig.Client is nil")
	_, err = client.NewPods(client.PodsConfig{Client: connect(t, new(apitest.Server)).API})
	require.EqualError(t, err, "client: PodsConfig.NodeName is empty")
}

// A short body breaks after so many bytes.
type short struct {
	io.ReadCloser
	left int
}

func (s *short) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := s.ReadCloser.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// After its store was restored to an earlier state, or exchanged, a server does not
// have the version that a watch resumes from: it reports that in different ways, and
// then everything is listed again.
func TestAnUnknownResourceVersionCausesARelist(t *testing.T) {
	for name, fault := range map[string]apitest.Fault{
		"gone":      {Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"},
		"too large": {Code: 504, Reason: metav1.StatusReasonTimeout, Message: "Too large resource version: 9000, current: 7"},
		"invalid":   {Code: 400, Reason: metav1.StatusReasonBadRequest, Message: "Invalid value: invalid resource version"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(switchboard)
				api := &apitest.Server{Fault: s.fault, NoWatchList: true}
				api.Put(newPod("web"))
				took := following(t, newPods(t, api))
				pass(time.Minute)
				listed := 0
				s.set(func(c apitest.Call) apitest.Fault {
					if c.Verb == "list" {
						listed++
					}
					if c.Verb == "watch" && listed == 0 {
						return fault
					}
					return apitest.Fault{}
				})
				api.DropWatches()
				api.Put(newPod("db"))
				pass(2 * time.Minute)
				assert.Equal(t, []string{"web uid-1", "db uid-2"}, took.last())
			})
		})
	}
}
