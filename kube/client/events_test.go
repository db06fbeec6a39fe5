package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
)

func newEvents(t testing.TB, api *apitest.Server, cfg client.EventsConfig) *client.Events {
	t.Helper()
	cfg.Client, cfg.NodeName = connect(t, api).Events, nodeName
	e, err := client.NewEvents(cfg)
	require.NoError(t, err)
	return e
}

func event(name, reason, message string) runtime.Event {
	pod := newPod(name)
	pod.UID = "uid-of-" + pod.UID
	ref := runtime.ContainerRef(pod, "main")
	return runtime.Event{Object: ref, Type: v1.EventTypeWarning, Reason: reason, Message: message}
}

func eventsOf(api *apitest.Server) []*v1.Event {
	var out []*v1.Event
	for _, o := range api.List("events") {
		out = append(out, o.(*v1.Event))
	}
	return out
}

func TestAnEventIsWhatTheKubeletWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		e := newEvents(t, api, client.EventsConfig{})
		running(t, e.Run)
		at := time.Now()
		e.Record(event("web", "BackOff", "Back-off restarting failed container"))
		synctest.Wait()
		list := eventsOf(api)
		require.Len(t, list, 1)
		got := list[0]
		assert.Equal(t, fmt.Sprintf("web.%x", at.UnixNano()), got.Name)
		assert.Equal(t, "prod", got.Namespace)
		assert.Equal(t, "spec.containers{main}", got.InvolvedObject.FieldPath)
		assert.Equal(t, v1.EventSource{Component: "kubelet", Host: nodeName}, got.Source)
		assert.Equal(t, "kubelet", got.ReportingController)
		assert.Equal(t, nodeName, got.ReportingInstance)
		assert.EqualValues(t, 1, got.Count)
		assert.Equal(t, "Warning BackOff Back-off restarting failed container", got.Type+" "+got.Reason+" "+got.Message)

		e.Record(runtime.Event{Object: v1.ObjectReference{Kind: "Node", Name: nodeName, UID: nodeName}, Type: "Normal", Reason: "Starting"})
		e.Record(event("web", "Long", strings.Repeat("ö", 5000)))
		synctest.Wait()
		assert.Equal(t, "default", eventsOf(api)[0].Namespace, "where the node's are")
		for _, one := range eventsOf(api) {
			assert.LessOrEqual(t, len(one.Message), 1024)
		}
	})
}

func TestEventsThatRepeatAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		e := newEvents(t, api, client.EventsConfig{})
		running(t, e.Run)
		for range 20 {
			e.Record(event("web", "Unhealthy", "Readiness probe failed"))
			pass(time.Second)
		}
		require.Len(t, eventsOf(api), 1)
		assert.EqualValues(t, 20, eventsOf(api)[0].Count)
		assert.Len(t, api.Calls("create"), 1)
		assert.Len(t, api.Calls("patch"), 19)
	})
}

func TestEventsOfOneReasonBecomeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		e := newEvents(t, api, client.EventsConfig{})
		running(t, e.Run)
		for i := range 20 {
			e.Record(event("web", "Unhealthy", fmt.Sprintf("Readiness probe failed: %d", i)))
			pass(time.Second)
		}
		assert.Len(t, eventsOf(api), 10)
		found := false
		for _, one := range eventsOf(api) {
			found = found || strings.HasPrefix(one.Message, "(combined from similar events): ")
		}
		assert.True(t, found)
	})
}

func TestEventsOfOneObjectAreRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		dropped := 0
		e := newEvents(t, api, client.EventsConfig{Hooks: client.EventsHooks{Dropped: func(_ runtime.Event, why error) {
			require.NoError(t, why)
			dropped++
		}}})
		running(t, e.Run)
		for i := range 100 {
			e.Record(event("web", fmt.Sprintf("Reason%d", i), "something"))
			e.Record(event(fmt.Sprintf("db-%d", i), "Pulled", "something"))
		}
		pass(time.Minute)
		assert.Len(t, api.Calls("create"), 125, "25 of web, and all of the others")
		assert.Equal(t, 75, dropped)
		api.Forget()
		for range 60 { // and then one in 5 minutes
			e.Record(event("web", "Again", "something"))
			pass(time.Minute)
		}
		assert.InDelta(t, 12, len(api.Calls()), 1)
	})
}

func TestEventsWaitForAnUnavailableServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(switchboard)
		api := &apitest.Server{Fault: s.fault}
		var dropped []error
		e := newEvents(t, api, client.EventsConfig{Queue: 5, Hooks: client.EventsHooks{Dropped: func(_ runtime.Event, why error) { dropped = append(dropped, why) }}})
		s.set(about("create", apitest.Fault{Refuse: true}))
		running(t, e.Run)
		for i := range 20 {
			e.Record(event(fmt.Sprintf("web-%d", i), "Pulled", ""))
			synctest.Wait()
		}
		assert.Len(t, dropped, 14, "one is being written, five wait")
		pass(time.Minute + time.Second)
		assert.Len(t, api.Calls(), 7, "one try in 10s")
		s.set(nil)
		pass(time.Minute)
		assert.Len(t, eventsOf(api), 6)

		s.set(about("create", apitest.Fault{Refuse: true}))
		dropped = nil
		api.Forget()
		e.Record(event("db", "Pulled", ""))
		pass(time.Hour)
		assert.Len(t, api.Calls(), 12, "and then it is dropped")
		require.Len(t, dropped, 1)
		require.ErrorIs(t, dropped[0], apitest.ErrRefused)
	})
}

func TestARejectedEventIsNotRetried(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 409, 413, 422} {
		synctest.Test(t, func(t *testing.T) {
			s := new(switchboard)
			api := &apitest.Server{Fault: s.fault}
			e := newEvents(t, api, client.EventsConfig{})
			s.set(about("create", apitest.Fault{Code: code}))
			running(t, e.Run)
			e.Record(event("web", "Pulled", ""))
			pass(time.Hour)
			assert.Len(t, api.Calls(), 1, "%d", code)
		})
	}
}

// The events of the pods of a deleted namespace are no warnings, as with the kubelet.
func TestTheLevelOfADroppedEvent(t *testing.T) {
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", Finalizers: []string{"test/hold"}, DeletionTimestamp: new(metav1.Now())}}
	for name, c := range map[string]struct {
		objects []k8sruntime.Object
		fault   apitest.Fault
		level   slog.Level
	}{
		"terminating namespace": {objects: []k8sruntime.Object{namespace}, level: slog.LevelDebug},
		"deleted namespace":     {level: slog.LevelDebug},
		"no permission":         {fault: apitest.Fault{Code: 403}, level: slog.LevelWarn},
		"unknown API":           {fault: apitest.Fault{Code: 404}, level: slog.LevelWarn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(switchboard)
				api := &apitest.Server{Fault: s.fault, RequireNamespaces: true}
				api.Put(c.objects...)
				if c.fault != (apitest.Fault{}) {
					s.set(about("create", c.fault))
				}
				var log strings.Builder
				dropped := 0
				e := newEvents(t, api, client.EventsConfig{
					Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
					Hooks:  client.EventsHooks{Dropped: func(runtime.Event, error) { dropped++ }},
				})
				e.Record(event("web", "Killing", ""))
				require.NoError(t, e.Flush(t.Context()))
				assert.Contains(t, log.String(), "level="+c.level.String()+` msg="Dropped event" object=prod/web reason=Killing`)
				assert.Equal(t, 1, dropped)
			})
		})
	}
}

func TestAThrottledEventIsWrittenInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(switchboard)
		api := &apitest.Server{Fault: s.fault}
		e := newEvents(t, api, client.EventsConfig{})
		running(t, e.Run)
		s.set(about("create", apitest.Fault{Code: 429}))
		e.Record(event("web", "Pulled", ""))
		pass(time.Minute)
		assert.LessOrEqual(t, len(api.Calls()), 8)
		s.set(nil)
		pass(11 * time.Second)
		assert.Len(t, eventsOf(api), 1)
	})
}

func TestAnExpiredEventIsCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		e := newEvents(t, api, client.EventsConfig{})
		running(t, e.Run)
		e.Record(event("web", "BackOff", "again"))
		synctest.Wait()
		api.Remove("events", "prod", eventsOf(api)[0].Name)
		pass(time.Second)
		e.Record(event("web", "BackOff", "again"))
		synctest.Wait()
		assert.Len(t, eventsOf(api), 1)
	})
}

func TestAnAgentThatEndsWritesTheLastEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(switchboard)
		api := &apitest.Server{Fault: s.fault}
		e := newEvents(t, api, client.EventsConfig{})
		e.Record(event("web", "Killing", ""))
		e.Record(event("db", "Killing", ""))
		require.NoError(t, e.Flush(t.Context()))
		assert.Len(t, eventsOf(api), 2)

		s.set(about("create", apitest.Fault{Hang: true}))
		e.Record(event("web-2", "Killing", ""))
		e.Record(event("db-2", "Killing", ""))
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.EqualError(t, e.Flush(ctx), "client: flush events: 2 not written: context deadline exceeded")
	})
}

func TestConfigOfEvents(t *testing.T) {
	conn := connect(t, new(apitest.Server))
	for want, cfg := range map[string]client.EventsConfig{
		"client: EventsConfig.Client is nil":     {NodeName: nodeName},
		"client: EventsConfig.NodeName is empty": {Client: conn.Events},
		"client: EventsConfig.Queue is negative": {Client: conn.Events, NodeName: nodeName, Queue: -1},
	} {
		_, err := client.NewEvents(cfg)
		require.EqualError(t, err, want)
	}
}

// The event that is being written when the agent stops is not lost: Flush writes it.
func TestAnEventThatIsBeingWrittenIsNotLostAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(switchboard)
		api := &apitest.Server{Fault: s.fault}
		s.set(about("create", apitest.Fault{Hang: true}))
		e := newEvents(t, api, client.EventsConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		e.Record(event("web", "Killing", "Stopping container main"))
		e.Record(event("db", "Killing", "Stopping container main"))
		synctest.Wait()
		cancel()
		require.NoError(t, <-done)
		late, stop := context.WithTimeout(t.Context(), time.Second)
		require.EqualError(t, e.Flush(late), "client: flush events: 2 not written: context deadline exceeded")
		stop()
		s.set(nil)
		require.NoError(t, e.Flush(t.Context()))
		list := eventsOf(api)
		require.Len(t, list, 2)
		for _, one := range list {
			assert.EqualValues(t, 1, one.Count)
		}
	})
}
