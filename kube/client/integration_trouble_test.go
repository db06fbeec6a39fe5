package client_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// Faults with a real server, and the limits of a node's permissions: nothing is lost, and
// retries are bounded. Each test has a separate node, namespace and connection.
func TestIntegrationClusterOfTrouble(t *testing.T) {
	lab.Need(t, "kubernetes")
	c := newCluster(t)
	t.Run("together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *cluster){
			"a watch is cut":                  func(t *testing.T, c *cluster) { clusterCut(t, c, false) },
			"a storm of refusals":             clusterStorm,
			"statuses are too large":          clusterTooLarge,
			"clocks differ":                   clusterClocks,
			"claims and slices":               clusterClaims,
			"a namespace goes under its pods": clusterNamespaceGoes,
			"a lease of another time":         clusterLease,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, c)
			})
		}
	})
	// It compacts the store of all: without the history a watch of the others could not be resumed.
	t.Run("a watch is too old", func(t *testing.T) { clusterCut(t, c, true) })
}

// Changes while no watch is open are delivered later: by resuming, where the server
// still has the history, and otherwise (410 Gone) by listing everything once.
func clusterCut(t *testing.T, c *cluster, compact bool) {
	const rounds = 2
	m := c.newMember(t, fmt.Sprintf("cut-%v", compact))
	for i := range rounds {
		m.make(fmt.Sprintf("web-%d", i))
	}
	m.ready("web-0", "web-1")
	begun := time.Now()
	for round := range rounds {
		last, err := c.admin.CoreV1().Pods(m.node).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		m.cable.unplug()
		going, late := fmt.Sprintf("web-%d", round), fmt.Sprintf("late-%d", round)
		m.make(late)
		require.NoError(t, c.admin.CoreV1().Pods(m.node).Delete(t.Context(), going, metav1.DeleteOptions{}))
		if compact {
			c.compact(t)
			w, err := c.admin.CoreV1().Pods(m.node).Watch(t.Context(), metav1.ListOptions{ResourceVersion: last.ResourceVersion})
			require.NoError(t, err)
			e := <-w.ResultChan()
			w.Stop()
			require.Equal(t, watch.Error, e.Type)
			require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(e.Object)), "%v", e.Object)
		}
		m.cable.plug()
		m.ready(late)
		soon(t, going+" is gone", func() bool { return m.get(going) == nil })
	}
	all := m.tally.count(func(a asking) bool { return a.all && a.code == 200 })
	if compact {
		assert.Greater(t, all, 1, "the server has made it list again")
		assert.LessOrEqual(t, all, 1+2*rounds)
	}
	m.bounded("pods", begun, 2, 20)
}

// A server that answers a node only with 429 is not overloaded, and gets each update
// once when that is over.
func clusterStorm(t *testing.T, c *cluster) {
	const pods = 10
	m := c.newMember(t, "storm")
	var names []string
	for i := range pods {
		names = append(names, m.make(fmt.Sprintf("web-%d", i)).Name)
	}
	m.ready(names...)

	// A level with no queue and one seat, for this node alone; that seat is taken.
	flow := c.admin.FlowcontrolV1()
	_, err := flow.PriorityLevelConfigurations().Create(t.Context(), &flowv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "closed"}, Spec: flowv1.PriorityLevelConfigurationSpec{
			Type: flowv1.PriorityLevelEnablementLimited, Limited: &flowv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(0)), LendablePercent: new(int32(0)), BorrowingLimitPercent: new(int32(0)),
				LimitResponse: flowv1.LimitResponse{Type: flowv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = flow.FlowSchemas().Create(t.Context(), &flowv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "closed"}, Spec: flowv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowv1.PriorityLevelConfigurationReference{Name: "closed"}, MatchingPrecedence: 3,
			Rules: []flowv1.PolicyRulesWithSubjects{{
				Subjects: []flowv1.Subject{{Kind: flowv1.SubjectKindUser, User: &flowv1.UserSubject{Name: "system:node:" + m.node}}},
				ResourceRules: []flowv1.ResourcePolicyRule{{
					Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true,
				}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	m.occupy(t)
	m.tally.forget()
	begun := time.Now()
	m.cable.unplug() // the watch must be opened again
	m.cable.plug()
	for _, name := range names {
		require.NoError(t, m.runtime.Exit(m.get(name).UID, "main", 1))
	}
	refused := func(a asking) bool { return a.code == http.StatusTooManyRequests }
	soon(t, "it is rejected repeatedly", func() bool {
		return m.tally.count(func(a asking) bool { return refused(a) && a.verb == "watch" }) > 1 &&
			m.tally.count(func(a asking) bool { return refused(a) && a.verb == "patch" }) > 3*pods
	})
	// The client obeys Retry-After: a request a second for each pod.
	m.bounded("while it storms", begun, 1.5*pods, 3*pods)
	for _, name := range names {
		assert.Zero(t, m.get(name).Status.ContainerStatuses[0].RestartCount)
	}

	m.tally.forget()
	require.NoError(t, flow.FlowSchemas().Delete(t.Context(), "closed", metav1.DeleteOptions{}))
	for _, name := range names {
		soon(t, "the restart of "+name+" is known", func() bool {
			pod := m.get(name)
			return pod.Status.ContainerStatuses[0].RestartCount == 1 && pod.Status.ContainerStatuses[0].State.Running != nil
		})
	}
	taken := m.tally.count(func(a asking) bool { return a.verb == "patch" && a.code == 200 })
	assert.LessOrEqual(t, taken, 3*pods, "terminated, waiting, running: no update is sent twice")
	m.make("late")
	m.ready("late")
}
