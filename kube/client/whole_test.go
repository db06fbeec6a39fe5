package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	core "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// An agent is a whole one: pods of an API server, and static ones, on a runtime in
// memory.
type agent struct {
	api     *apitest.Server // nil where there is a real one
	faults  *switchboard
	static  *podsource.Memory
	runtime *runtimetest.Runtime
	pods    *client.Pods
	whole   *core.Agent

	mu       sync.Mutex
	events   map[string]int // by reason
	messages []string       // "Reason Message", the first of each reason
}

func newAgent(t *testing.T, objects ...*v1.Pod) *agent {
	t.Helper()
	a := &agent{
		api: new(apitest.Server), faults: new(switchboard), runtime: &runtimetest.Runtime{Backoff: 10 * time.Second},
	}
	a.api.Fault = a.faults.fault
	for _, pod := range objects {
		a.api.Put(pod)
	}
	for _, run := range a.parts(t, connect(t, a.api).API, nodeName, owner) {
		running(t, run)
	}
	pass(5 * time.Second)
	return a
}

// parts returns the Run functions of an agent that is that node of an API server.
func (a *agent) parts(t *testing.T, api kubernetes.Interface, node string, owner metav1.OwnerReference) []func(context.Context) error {
	t.Helper()
	a.static, a.events = new(podsource.Memory), map[string]int{}
	a.static.Set()
	retry := func() { a.whole.Status().Retry() }
	var err error
	a.pods, err = client.NewPods(client.PodsConfig{Client: api, NodeName: node, Recovered: retry})
	require.NoError(t, err)
	sink, err := client.NewStatuses(client.StatusesConfig{Client: api, Pods: a.pods, Record: a.record})
	require.NoError(t, err)
	mirrors, err := client.NewMirrors(client.MirrorsConfig{Client: api, Node: func() (metav1.OwnerReference, bool) { return owner, true }})
	require.NoError(t, err)
	a.whole, err = core.New(core.Config{
		Runtime: a.runtime, Sink: sink, Record: a.record,
		Sources: map[string]podsource.PodSource{podsource.APISource: a.pods, podsource.FileSource: a.static}, Static: []string{podsource.FileSource},
		Subsystems: core.Subsystems{Mirrors: mirrors, Admitters: pipeline.Admitters{pipeline.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
			for _, failure := range admission.Check(pod, nil, admission.Node{}) {
				return &failure.Rejection
			}
			return nil
		})}},
	})
	require.NoError(t, err)
	return []func(context.Context) error{sink.Run, a.whole.Run}
}

func (a *agent) record(e runtime.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events[e.Reason] == 0 {
		a.messages = append(a.messages, e.Reason+" "+e.Message)
	}
	a.events[e.Reason]++
}

// recorded returns the number of events with that reason.
func (a *agent) recorded(reason string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.events[reason]
}

// calls returns the calls since it was last called, lists and watches excluded.
func (a *agent) calls() []string {
	synctest.Wait()
	calls := callsOf(a.api.Calls())
	a.api.Forget()
	return calls
}

// status returns the status on the API server.
func (a *agent) status(name string) v1.PodStatus {
	synctest.Wait()
	if pod := a.api.Pod("prod", name); pod != nil {
		return pod.Status
	}
	return v1.PodStatus{}
}

// meddle writes into a status as another client.
func (a *agent) meddle(name string, edit func(*v1.PodStatus)) {
	pod := a.api.Pod("prod", name)
	edit(&pod.Status)
	a.api.Put(pod)
	synctest.Wait()
}

// serving is a pod whose container runs forever.
func serving(name string) *v1.Pod {
	pod := newPod(name)
	pod.UID = types.UID("uid-of-" + name)
	return manifest.Default(pod)
}
