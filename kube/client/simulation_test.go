package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/status"
)

// A simulatedAPI is the API server of a simulated node, whose agents have a Pods and a Statuses. It has the pods of the
// simulation, which gets the statuses that result from the client's patches. After a request without a response the network
// is interrupted for outage: there are no watches.
type simulatedAPI struct {
	api *apitest.Server

	mu    sync.Mutex
	until time.Time // the network is interrupted
}

const outage = 20 * time.Second

// simulatedClient returns the configuration of runs of a schedule with a client. A fault of writes interrupts the watches
// first: the client must not observe what a write has changed.
func simulatedClient(seed uint64, s sim.Schedule) sim.Config {
	var w *simulatedAPI
	return sim.Config{
		Seed: seed, Schedule: s,
		Client: func() sim.ClientFunc {
			w = &simulatedAPI{api: &apitest.Server{NoRecord: true}}
			return w.client
		},
		OnEntry: func(e sim.Entry) {
			if e.Kind == sim.StepTaken && e.Step.Do == sim.Fault && slices.Contains([]string{"sink", "UpdatePodStatus", "DeletePod"}, e.Step.Calls) {
				w.interrupt(e.Step.For)
			}
		},
	}
}

func (w *simulatedAPI) client(a *sim.Agent, source podsource.PodSource, sink status.Sink) (podsource.PodSource, status.Sink, error) {
	config := w.api.RESTConfig()
	config.Transport = simulatedNetwork{w, a, sink}
	conn, err := client.ConnectTo(config, client.Config{})
	if err != nil {
		return nil, nil, err
	}
	pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: nodeName})
	if err != nil {
		return nil, nil, err
	}
	statuses, err := client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: pods})
	if err != nil {
		return nil, nil, err
	}
	return podsource.Func(func(ctx context.Context, set func([]*v1.Pod)) error {
		var parts sync.WaitGroup
		defer parts.Wait()
		began := false // what other clients have written while no agent ran is read at the start
		parts.Go(func() {
			_ = source.Run(ctx, func(pods []*v1.Pod) {
				w.put(pods, began)
				began = true
			})
		})
		parts.Go(func() { _ = statuses.Run(ctx) })
		return pods.Run(ctx, set)
	}), statuses, nil
}

// put has the API server have these pods, with the statuses that it has if keep is true.
func (w *simulatedAPI) put(pods []*v1.Pod, keep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	desired := map[string]bool{}
	for _, pod := range pods {
		desired[pod.Name] = true
		pod = pod.DeepCopy()
		pod.Spec.NodeName = nodeName
		old := w.api.Pod(pod.Namespace, pod.Name)
		if old != nil && old.UID != pod.UID {
			w.api.Remove("pods", pod.Namespace, pod.Name)
		} else if old != nil && keep {
			pod.Status = old.Status
		}
		w.api.Put(pod)
	}
	for _, object := range w.api.List("pods") {
		if old := object.(*v1.Pod); !desired[old.Name] {
			w.api.Remove("pods", old.Namespace, old.Name)
		}
	}
}

// A simulatedNetwork is the network between an agent and the API server.
type simulatedNetwork struct {
	*simulatedAPI
	agent *sim.Agent
	sink  status.Sink // of the simulation
}

var errNoNetwork = errors.New("the network is interrupted")

func (n simulatedNetwork) RoundTrip(req *http.Request) (response *http.Response, err error) {
	name, isPod := strings.CutPrefix(strings.TrimSuffix(req.URL.Path, "/status"), "/api/v1/namespaces/default/pods/")
	if !isPod {
		if n.interrupted() {
			return nil, errNoNetwork
		}
		return n.api.RoundTrip(req)
	}
	call := sim.Call{Method: "UpdatePodStatus"}
	pod := n.api.Pod(v1.NamespaceDefault, path.Base(name))
	if pod != nil {
		call.UID = pod.UID
	}
	if req.Method == http.MethodDelete {
		call.Method = "DeletePod"
	}
	err = n.agent.Call(req.Context(), call, func() error {
		if response, err = n.api.RoundTrip(req); err != nil || response.StatusCode/100 != 2 || req.Method == http.MethodGet {
			return err
		}
		if req.Method == http.MethodDelete {
			return n.sink.DeletePod(req.Context(), pod)
		}
		data, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		response.Body = io.NopCloser(bytes.NewReader(data))
		var written v1.Pod
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, &written); err != nil {
			return err
		}
		return n.sink.UpdatePodStatus(req.Context(), &written, written.Status)
	})
	if err != nil {
		if req.Context().Err() == nil {
			n.interrupt(outage)
		}
		return nil, err
	}
	return response, nil
}

func (w *simulatedAPI) interrupted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.until)
}

func (w *simulatedAPI) interrupt(d time.Duration) {
	w.mu.Lock()
	w.until = time.Now().Add(d)
	w.mu.Unlock()
	w.api.DropWatches()
}

// apiPods returns a schedule without static pods, in which no two pods have a UID in common, as in an API server.
func apiPods(s sim.Schedule) sim.Schedule {
	used, uids := map[types.UID]int{}, map[types.UID]types.UID{}
	for i := range s {
		uid := s[i].UID
		if uid == "" {
			uid = types.UID(s[i].Pod)
		}
		if s[i].Shape.Static = false; s[i].Do == sim.Add {
			if used[uid]++; used[uid] > 1 {
				uids[uid] = uid + types.UID(strings.Repeat("'", used[uid]-1))
			}
		}
		if uids[uid] != "" {
			s[i].UID = uids[uid]
		}
	}
	return s
}

func TestInvariantsHoldWithAClient(t *testing.T) {
	seedrun.Each(t, 15, func(t *testing.T, seed uint64) {
		sim.Check(t, simulatedClient(seed, apiPods(sim.Draw(seed, sim.Options{}))))
	})
}

// A container becomes ready and fails while no response arrives and there is no watch.
func TestAStatusIsCompleteAfterLostResponses(t *testing.T) {
	schedule, err := sim.Parse(`
		0s add web policy=Never main:c=exit=1@20s,ready=5s
		4s fault UpdatePodStatus kind=lost for=30s
	`)
	require.NoError(t, err)
	report := sim.Check(t, simulatedClient(0, schedule))
	var reported []string
	for _, e := range report.Trace {
		if e.Kind == sim.StatusUpdated {
			reported = append(reported, string(e.Status.Phase)+" "+string(ready(e.Status)))
		}
	}
	require.NotEmpty(t, reported)
	assert.Contains(t, reported, "Running True")
	assert.Equal(t, "Failed False", reported[len(reported)-1])
}

func ready(s *v1.PodStatus) v1.ConditionStatus {
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady {
			return c.Status
		}
	}
	return v1.ConditionUnknown
}
