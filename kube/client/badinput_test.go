package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Bad input from the API server, each with a bound on its cost. perMinute is the
// agent's number of calls per minute, including lists and watches.
func (a *agent) perMinute(minutes int) float64 {
	synctest.Wait()
	a.api.Forget()
	pass(time.Duration(minutes) * time.Minute)
	n := len(a.api.Calls())
	a.api.Forget()
	return float64(n) / float64(minutes)
}

// resting is the permitted number of calls per minute of an idle agent: it reopens its
// watch now and then.
const resting = 0.5

func TestPodsWithImpossibleSpecsAffectNoOthers(t *testing.T) {
	impossible := map[string]func(*v1.Pod){
		"nothing":  func(p *v1.Pod) { p.Spec = v1.PodSpec{NodeName: nodeName} },
		"twins":    func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0]) },
		"nameless": func(p *v1.Pod) { p.Spec.Containers[0].Name, p.Spec.Containers[0].Image = "", "" },
		"policy":   func(p *v1.Pod) { p.Spec.RestartPolicy = "Sometimes" },
		"grace":    func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-1 << 62)) },
		"deadline": func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(-1)) },
		"debts": func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("-5")}
		},
		"lists": func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = v1.ResourceList{"": resource.MustParse("1e30")}
		},
		"probe": func(p *v1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &v1.Probe{PeriodSeconds: -1, TimeoutSeconds: -1, FailureThreshold: -1}
		},
		"gates":    func(p *v1.Pod) { p.Spec.ReadinessGates = []v1.PodReadinessGate{{}, {ConditionType: v1.PodReady}} },
		"dreams":   func(p *v1.Pod) { p.Status = v1.PodStatus{Phase: "Dreaming", Conditions: []v1.PodCondition{{}, {}}} },
		"imageful": func(p *v1.Pod) { p.Spec.Containers[0].Image = "none" },
	}
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t)
		a.runtime.Behave("none", fake.Behavior{Fail: &fake.Failure{Reason: "InvalidImageName", Message: "none is no image"}})
		for name, spoil := range impossible {
			pod := serving(name)
			spoil(pod)
			a.api.Put(pod)
		}
		a.api.Put(serving("web"))
		pass(10 * time.Minute)
		require.Equal(t, v1.PodRunning, a.status("web").Phase)
		for name := range impossible {
			s := a.status(name)
			assert.NotNil(t, s.StartTime, name) // a status of the node
			t.Logf("%-9s %s %s %s", name, s.Phase, s.Reason, s.Message)
		}
		assert.Equal(t, "Failed NoContainers", string(a.status("nothing").Phase)+" "+a.status("nothing").Reason)
		assert.Equal(t, 1, a.recorded("NoContainers"))
		assert.Equal(t, v1.PodPending, a.status("imageful").Phase)
		assert.Equal(t, "InvalidImageName", a.status("imageful").ContainerStatuses[0].State.Waiting.Reason)
		assert.LessOrEqual(t, a.perMinute(60), 1.0)

		for name := range impossible {
			a.api.Put(deleting(a.api.Pod("prod", name)))
		}
		pass(2 * time.Minute)
		for name := range impossible {
			assert.Nil(t, a.api.Pod("prod", name), "%s can be deleted", name)
		}
		assert.NotNil(t, a.api.Pod("prod", "web"))
		assert.LessOrEqual(t, a.perMinute(60), resting)
	})
}

// The API server stores a shorter status than was sent: that is not an edit to be
// repaired.
func TestAStatusThatIsTooLargeCostsNoMoreCalls(t *testing.T) {
	for name, limit := range map[string]int{"some of it fits": 10_000, "none of it fits": 50} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(t)
				a.runtime.Behave("big", fake.Behavior{Fail: &fake.Failure{Reason: "CreateContainerError", Message: strings.Repeat("no ", 1000)}})
				a.faults.set(func(c apitest.Call) apitest.Fault {
					if c.Verb == "patch" && len(c.Body) > limit {
						return apitest.Fault{Code: http.StatusRequestEntityTooLarge, Message: "limit is reached"}
					}
					return apitest.Fault{}
				})
				pod := serving("big")
				pod.Spec.Containers = nil
				for i := range 20 {
					pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%02d", i), Image: "big"})
				}
				a.api.Put(pod)
				pass(10 * time.Minute)
				if limit > 1000 { // cut short
					require.Len(t, a.status("big").ContainerStatuses, 20)
					assert.Equal(t, "CreateContainerError", a.status("big").ContainerStatuses[0].State.Waiting.Reason)
				}
				n := a.recorded("FailedToUpdateStatus")
				assert.True(t, n > 0 && n <= 4, "%d events", n)
				for range 5 {
					a.meddle("big", func(s *v1.PodStatus) { s.Message = "" })
				}
				assert.LessOrEqual(t, a.perMinute(20), 1.5)
				assert.Equal(t, n, a.recorded("FailedToUpdateStatus"), "one event")
			})
		})
	}
}

func TestClocksThatDifferEndNoPodEarlyOrLate(t *testing.T) {
	for name, skew := range map[string]time.Duration{"the server is ahead": 48 * time.Hour, "the server is behind": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(t)
				a.runtime.Behave("polite", fake.Behavior{StopDelay: 20 * time.Second})
				pod := serving("web")
				pod.Spec.Containers[0].Image = "polite"
				pod.CreationTimestamp = metav1.NewTime(time.Now().Add(skew))
				a.api.Put(pod)
				pass(5 * time.Second)
				require.Equal(t, v1.PodRunning, a.status("web").Phase)
				assert.LessOrEqual(t, a.perMinute(60), resting)

				gone := a.api.Pod("prod", "web")
				gone.DeletionTimestamp, gone.DeletionGracePeriodSeconds = new(metav1.NewTime(time.Now().Add(skew))), new(int64(30))
				a.api.Put(gone)
				pass(15 * time.Second)
				assert.Equal(t, v1.PodRunning, a.status("web").Phase, "it uses 20 of its 30 seconds")
				pass(15 * time.Second)
				assert.Nil(t, a.api.Pod("prod", "web"))
				assert.LessOrEqual(t, a.perMinute(60), resting)
			})
		})
	}
}

func TestADeletedNamespaceIsNoHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, serving("web"), serving("db"))
		static := serving("etcd-node-1")
		static.Annotations = newStatic("h1").Annotations
		a.static.Set(static)
		pass(5 * time.Second)
		require.Equal(t, v1.PodRunning, a.status("web").Phase)

		// It is deleted with its content, and accepts no new objects.
		a.faults.set(func(c apitest.Call) apitest.Fault {
			if c.Verb == "create" || c.Verb == "patch" || c.Verb == "delete" || c.Verb == "get" {
				return apitest.Fault{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: `namespaces "prod" not found`}
			}
			return apitest.Fault{}
		})
		for _, name := range []string{"web", "db", static.Name} {
			a.api.Remove("pods", "prod", name)
		}
		pass(time.Minute)
		pods, err := a.runtime.Pods(t.Context())
		require.NoError(t, err)
		running := 0
		for _, pod := range pods {
			for _, c := range pod.Containers {
				if c.State == runtime.ContainerRunning {
					running++
				}
			}
		}
		assert.Equal(t, 1, running, "the static pod")
		assert.LessOrEqual(t, a.perMinute(60), 2.0)
		a.faults.set(nil)
		pass(6 * time.Minute)
		assert.Equal(t, v1.PodRunning, a.status(static.Name).Phase, "the namespace exists again")
	})
}

func TestAnAgentWithoutPermissionsCallsSeldom(t *testing.T) {
	for name, code := range map[string]int{"forbidden": http.StatusForbidden, "unauthorized": http.StatusUnauthorized} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAgent(t, serving("a"), serving("b"), serving("c"))
				a.faults.set(func(apitest.Call) apitest.Fault { return apitest.Fault{Code: code, Message: "you may not"} })
				a.api.DropWatches()
				static := serving("etcd-node-1")
				static.Annotations = newStatic("h1").Annotations
				a.static.Set(static)
				for _, pod := range []string{"a", "b", "c"} {
					require.NoError(t, a.runtime.Exit(types.UID("uid-of-"+pod), "main", 1))
				}
				pass(10 * time.Minute)
				n := a.recorded("FailedToUpdateStatus")
				assert.Equal(t, 3, n, "one event for each")
				assert.LessOrEqual(t, a.perMinute(60), 10.0, "of each pod and of the watch")
				a.faults.set(nil)
				pass(time.Minute)
				for _, pod := range []string{"a", "b", "c"} {
					assert.EqualValues(t, 1, a.status(pod).ContainerStatuses[0].RestartCount)
				}
				// The mirror pod is requested at the first sync after the rest of 5m:
				// up to 90s later. Then its status.
				pass(7 * time.Minute)
				assert.Equal(t, v1.PodRunning, a.status(static.Name).Phase)
			})
		})
	}
}
