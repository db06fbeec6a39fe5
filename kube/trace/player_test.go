package trace_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/trace"
	clustertrace "github.com/kubeparts/kubeparts/sim/cluster/trace"
)

func player(t *testing.T, api *apitest.Server, cfg trace.Config) *trace.Player {
	t.Helper()
	p, err := trace.NewPlayer(api.RESTConfig(), cfg)
	require.NoError(t, err)
	return p
}

func configMap(name string, more ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}}}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetNamespace("prod")
	o.SetName(name)
	for _, text := range more {
		o.Object["data"].(map[string]any)[text] = text
	}
	return o
}

// Half an hour of a trace takes three minutes at speed 10.
func TestObjectsAreAppliedAndDeletedAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		api := &apitest.Server{RequireNamespaces: true}
		var played []trace.Played
		cfg := trace.Config{
			Speed: 10, NamespacePrefix: "virtual-",
			Edit: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"edited": "true"}) },
		}
		cfg.Hooks = cfg.Hooks.Join(trace.Hooks{Played: func(p trace.Played) { played = append(played, p) }})
		changed := configMap("a", "one", "two")
		changed.SetUID("of-another-cluster")
		changed.SetResourceVersion("77")
		changed.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}})
		tr := &trace.Trace{Events: []trace.Event{
			{At: 0, Applied: []*unstructured.Unstructured{configMap("a", "one"), configMap("b")}},
			{At: 10 * time.Minute, Applied: []*unstructured.Unstructured{changed}},
			{At: 30 * time.Minute, Deleted: []*unstructured.Unstructured{configMap("b"), configMap("missing")}},
		}}
		before := changed.DeepCopy()
		require.NoError(t, player(t, api, cfg).Play(t.Context(), tr))
		assert.Equal(t, 3*time.Minute, time.Since(start))
		assert.Equal(t, []trace.Played{{Event: 0}, {Event: 1}, {Event: 2}}, played)
		assert.Equal(t, before, changed, "the trace is not modified")

		var times []time.Duration
		for _, c := range api.Calls("patch", "configmaps") {
			times = append(times, c.At.Sub(start))
		}
		assert.Equal(t, []time.Duration{0, 0, time.Minute}, times)
		require.Len(t, api.List("configmaps"), 1)
		a := api.Get("configmaps", "virtual-prod", "a").(*v1.ConfigMap)
		assert.Equal(t, map[string]string{"one": "one", "two": "two"}, a.Data)
		assert.Equal(t, "true", a.Labels["edited"])
		assert.Empty(t, a.OwnerReferences)
		assert.NotNil(t, api.Get("namespaces", "", "virtual-prod"))
	})
}

func TestAServerThatIsOverloadedIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, failures, forbidden := new(apitest.Server), 0, false
		api.Fault = func(c apitest.Call) apitest.Fault {
			if c.Verb == "patch" && c.Name == "a" {
				if failures++; failures <= 3 {
					return apitest.Fault{Code: http.StatusServiceUnavailable}
				}
			}
			if c.Name == "b" && !forbidden {
				forbidden = true
				return apitest.Fault{Code: http.StatusForbidden, Message: `error looking up service account prod/default: serviceaccount "default" not found`}
			}
			if c.Name == "bad" {
				return apitest.Fault{Code: http.StatusForbidden}
			}
			return apitest.Fault{}
		}
		var played []trace.Played
		p := player(t, api, trace.Config{Hooks: trace.Hooks{Played: func(p trace.Played) { played = append(played, p) }}})
		err := p.Play(t.Context(), &trace.Trace{Events: []trace.Event{
			{Applied: []*unstructured.Unstructured{configMap("a")}},
			{At: time.Second, Deleted: []*unstructured.Unstructured{configMap("a")}},
			{At: time.Minute, Applied: []*unstructured.Unstructured{configMap("b"), configMap("bad"), configMap("c")}},
		}})
		assert.Equal(t, []trace.Played{{Event: 0}, {Event: 1, Late: 2 * time.Second}}, played)
		assert.ErrorContains(t, err, "trace: event 2: apply ConfigMap prod/bad: ")
		assert.Nil(t, api.Get("configmaps", "prod", "c"))
	})
}

func TestAPlayIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := player(t, new(apitest.Server), trace.Config{}).Play(ctx, &trace.Trace{Events: []trace.Event{{At: time.Hour}}})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "event 0")
	})
}

func TestMisuseOfAPlayer(t *testing.T) {
	_, err := trace.NewPlayer(nil, trace.Config{})
	assert.EqualError(t, err, "trace: REST configuration is nil")
	_, err = trace.NewPlayer(new(apitest.Server).RESTConfig(), trace.Config{Speed: -1})
	assert.EqualError(t, err, "trace: Config.Speed -1 is negative")
	unknown := configMap("x")
	unknown.SetKind("Unknown")
	err = player(t, new(apitest.Server), trace.Config{}).Play(t.Context(), &trace.Trace{Events: []trace.Event{{Applied: []*unstructured.Unstructured{unknown}}}})
	assert.ErrorContains(t, err, `event 0: apply Unknown prod/x: no matches for kind "Unknown"`)
}

// The pods of a CSV file run on fake nodes.
func TestPodsOfATraceTerminateAsTheyDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
		pods, err := clustertrace.ReadPods(strings.NewReader("name,arrival_s,duration_s,exit_code,restart_policy,recreate,priority,memory_mib\n" +
			"job,60,600,,,,1000,128\nfails,60,30,3,,,-5,\nweb,120,,,,,,\nset,120,,,,true,,\nagain,120,5,,OnFailure,true,,\n"))
		require.NoError(t, err)
		tr, err := trace.OfPods(pods, "prod", fakenode.Annotation)
		require.NoError(t, err)
		require.Len(t, tr.Events, 2)
		require.NoError(t, player(t, api, trace.Config{}).Play(t.Context(), tr))
		time.Sleep(time.Minute)
		assert.Equal(t, v1.PodRunning, api.Pod("prod", "job").Status.Phase)
		assert.Equal(t, "128Mi", api.Pod("prod", "job").Spec.Containers[0].Resources.Requests.Memory().String())
		assert.Equal(t, v1.PodRunning, api.Pod("prod", "web").Status.Phase)
		fails := api.Pod("prod", "fails")
		assert.Equal(t, v1.PodFailed, fails.Status.Phase)
		assert.Equal(t, int32(3), fails.Status.ContainerStatuses[0].State.Terminated.ExitCode)
		assert.Equal(t, "trace-minus-5", fails.Spec.PriorityClassName)
		assert.Len(t, api.List("priorityclasses.scheduling.k8s.io"), 2)
		assert.Len(t, api.List("replicasets.apps"), 1)
		assert.Len(t, api.List("jobs.batch"), 1)
		time.Sleep(10 * time.Minute)
		job := api.Pod("prod", "job")
		assert.Equal(t, v1.PodSucceeded, job.Status.Phase)
		state := job.Status.ContainerStatuses[0].State.Terminated
		assert.Equal(t, 10*time.Minute, state.FinishedAt.Sub(state.StartedAt.Time).Round(time.Second))
	})
}
