package kubelet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/auth"
)

// A real Kubernetes has this agent as its only node. The tests without side effects run
// in parallel; then those that stop the agent or the API server.
func TestIntegrationCluster(t *testing.T) {
	w := onCluster(t)
	t.Run("the node", func(t *testing.T) { clusterNode(t, w) })
	t.Run("together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *room){
			"a deployment is rolled out, updated and scaled": clusterDeployment,
			"a pod is deleted with grace":                    clusterGrace,
			"a job completes":                                clusterJob,
			"a name is used fifty times":                     clusterSameName,
			"a stateful set keeps names and order":           clusterStateful,
			"a static pod has a mirror":                      clusterStatic,
			"a pod is evicted":                               clusterEviction,
			"a namespace is deleted":                         clusterNamespace,
			"an environment comes from the cluster":          clusterEnvironment,
			"pods that can not be":                           clusterBadInput,
			"an agent without rights":                        clusterStranger,
			"a pod has a token":                              clusterToken,
			"the node authorizes requests":                   clusterAPI,
			"an overwritten status is repaired":              clusterMended,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				words := strings.Fields(name)
				test(t, w.room(t, "t-"+words[1]+"-"+words[len(words)-1]))
			})
		}
	})
	t.Run("the agent is away", func(t *testing.T) { clusterAgentAway(t, w) })
	t.Run("the API server is away", func(t *testing.T) { clusterAPIAway(t, w) })
}

func clusterNode(t *testing.T, w *clusterWorld) {
	node, err := w.api.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "7", node.Labels["rack"])
	assert.Equal(t, "node", node.Labels[v1.LabelHostname])
	assert.Contains(t, node.Status.NodeInfo.ContainerRuntimeVersion, "containerd://"+w.daemon.Version)
	assert.NotEmpty(t, node.Status.NodeInfo.BootID)
	assert.NotEmpty(t, node.Status.Images)
	assert.Equal(t, "110", node.Status.Allocatable.Pods().String())
	assert.NotZero(t, node.Status.Capacity.Memory().Value())
	var names []string
	for _, h := range node.Status.RuntimeHandlers {
		names = append(names, h.Name)
	}
	assert.Contains(t, names, "runc")
	addresses := map[v1.NodeAddressType]string{}
	for _, a := range node.Status.Addresses {
		addresses[a.Type] = a.Address
	}
	assert.NotEmpty(t, addresses[v1.NodeInternalIP])
	assert.Equal(t, "node", addresses[v1.NodeHostName])

	leases := w.api.CoordinationV1().Leases(v1.NamespaceNodeLease)
	first, err := leases.Get(t.Context(), "node", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, node.UID, first.OwnerReferences[0].UID)
	w.until("the lease is renewed", func() error {
		lease, err := leases.Get(t.Context(), "node", metav1.GetOptions{})
		if err == nil && !lease.Spec.RenewTime.After(first.Spec.RenewTime.Time) {
			err = fmt.Errorf("since %v it was not", lease.Spec.RenewTime)
		}
		return err
	})
}

func clusterDeployment(t *testing.T, r *room) {
	deployments := r.api.AppsV1().Deployments(r.name)
	_, err := deployments.Create(t.Context(), deployment("web", 10, "echo one; trap 'exit 0' TERM; sleep 3600 & wait"), metav1.CreateOptions{})
	require.NoError(t, err)
	r.untilAvailable("web", 10)

	patch := `{"spec":{"template":{"metadata":{"annotations":{"v":"2"}}}}}`
	_, err = deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	r.untilAvailable("web", 10)
	pods, err := r.api.CoreV1().Pods(r.name).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		if p.DeletionTimestamp == nil {
			assert.Equal(t, "2", p.Annotations["v"])
			assert.NotEmpty(t, p.Status.PodIP)
		}
	}

	_, err = deployments.Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	r.untilAvailable("web", 0)
	r.until("nothing is left of it", func() error {
		if left := r.running(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

func clusterGrace(t *testing.T, r *room) {
	// It uses three seconds of its grace period to exit, with its own code.
	polite := spec("trap 'echo leaving; sleep 3; exit 7' TERM; echo ready; sleep 3600 & wait")
	polite.TerminationGracePeriodSeconds = new(int64(1000))
	r.make("polite", polite)
	stubborn := spec("trap '' TERM; sleep 3600")
	stubborn.TerminationGracePeriodSeconds = new(int64(2))
	r.make("stubborn", stubborn)
	pod := r.untilPhase("polite", v1.PodRunning)
	r.untilPhase("stubborn", v1.PodRunning)
	r.until("it would notice a TERM", func() error {
		if printed := r.logOf(pod); printed != "ready\n" {
			return fmt.Errorf("%q", printed)
		}
		return nil
	})
	watch, err := r.api.CoreV1().Pods(r.name).Watch(t.Context(), metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
	require.NoError(t, err)
	defer watch.Stop()
	begun := time.Now()
	r.delete("polite", -1)
	r.delete("stubborn", -1)
	r.untilGone("polite")
	r.untilGone("stubborn")
	assert.GreaterOrEqual(t, time.Since(begun), 3*time.Second)
	codes := map[string]int32{}
	for done := false; !done && len(codes) < 2; {
		select {
		case e, on := <-watch.ResultChan():
			done = !on
			if p, ok := e.Object.(*v1.Pod); ok && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Terminated != nil {
				codes[p.Name] = p.Status.ContainerStatuses[0].State.Terminated.ExitCode
			}
		case <-time.After(patience):
			done = true
		}
	}
	assert.Equal(t, map[string]int32{"polite": 7, "stubborn": 137}, codes, "the exit codes are reported before the deletion")
	r.untilEvent("polite", "Killing")
}

func clusterJob(t *testing.T, r *room) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "sums"}, Spec: batchv1.JobSpec{
		Completions: new(int32(4)), Parallelism: new(int32(2)), BackoffLimit: new(int32(3)),
		Template: v1.PodTemplateSpec{Spec: spec("sleep 0.5; exit 0")},
	}}
	job.Spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
	_, err := r.api.BatchV1().Jobs(r.name).Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	failing := job.DeepCopy()
	failing.Name, failing.Spec.Completions, failing.Spec.BackoffLimit = "fails", new(int32(1)), new(int32(0))
	failing.Spec.Template.Spec = spec("exit 3")
	failing.Spec.Template.Spec.RestartPolicy = v1.RestartPolicyNever
	_, err = r.api.BatchV1().Jobs(r.name).Create(t.Context(), failing, metav1.CreateOptions{})
	require.NoError(t, err)
	for name, want := range map[string]batchv1.JobConditionType{"sums": batchv1.JobComplete, "fails": batchv1.JobFailed} {
		r.until(fmt.Sprintf("job %s is %s", name, want), func() error {
			j, err := r.api.BatchV1().Jobs(r.name).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range j.Status.Conditions {
				if c.Type == want && c.Status == v1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("%+v", j.Status)
		})
	}
}

func clusterStateful(t *testing.T, r *room) {
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(2)), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec("hostname; trap 'exit 0' TERM; sleep 3600 & wait")},
	}}
	_, err := r.api.AppsV1().StatefulSets(r.name).Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	before := r.untilPhase("db-1", v1.PodRunning)
	zero := r.untilPhase("db-0", v1.PodRunning)
	assert.False(t, before.CreationTimestamp.Before(&zero.CreationTimestamp), "one after the other")
	r.until("it resolves its name", func() error {
		if printed := r.logOf(before); printed != "db-1\n" {
			return fmt.Errorf("%q", printed)
		}
		return nil
	})
	r.delete("db-1", -1)
	r.until("another pod has the name", func() error {
		pod, err := r.pod("db-1")
		if err == nil && (pod.UID == before.UID || pod.Status.Phase != v1.PodRunning) {
			err = fmt.Errorf("%s is %s", pod.UID, pod.Status.Phase)
		}
		return err
	})
	require.NoError(t, r.api.AppsV1().StatefulSets(r.name).Delete(t.Context(), "db", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}))
	r.untilGone("db-0")
}

func clusterStatic(t *testing.T, r *room) {
	put := func(version int) {
		r.write("static.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: static, namespace: %s}\nspec:\n  terminationGracePeriodSeconds: 1\n  enableServiceLinks: false\n  containers:\n  - {name: main, image: %q, command: [sh, -c, \"echo %d; trap 'exit 0' TERM; sleep 3600 & wait\"]}\n", r.name, lab.Busybox, version))
	}
	put(1)
	mirror := r.untilPhase("static-node", v1.PodRunning)
	assert.Equal(t, "Node", mirror.OwnerReferences[0].Kind)
	assert.NotEmpty(t, mirror.Annotations["kubernetes.io/config.mirror"])
	assert.NotEmpty(t, mirror.Status.PodIP)
	id := mirror.Status.ContainerStatuses[0].ContainerID

	// Deleting the mirror pod does not affect the static pod.
	r.delete("static-node", 0)
	var again *v1.Pod
	r.until("there is another copy", func() (err error) {
		if again, err = r.pod("static-node"); err == nil && (again.UID == mirror.UID || again.Status.Phase != v1.PodRunning) {
			err = fmt.Errorf("%s is %s", again.UID, again.Status.Phase)
		}
		return err
	})
	assert.Equal(t, id, again.Status.ContainerStatuses[0].ContainerID)

	put(2)
	r.until("the copy follows the file", func() error {
		pod, err := r.pod("static-node")
		if err == nil && (!strings.Contains(strings.Join(pod.Spec.Containers[0].Command, " "), "echo 2") || pod.Status.Phase != v1.PodRunning) {
			err = fmt.Errorf("%v is %s", pod.Spec.Containers[0].Command, pod.Status.Phase)
		}
		return err
	})
	r.remove("static.yaml")
	r.untilGone("static-node")
}

func clusterEviction(t *testing.T, r *room) {
	r.make("one", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	r.make("two", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "two"}},
	}}
	_, err := r.api.PolicyV1().PodDisruptionBudgets(r.name).Create(t.Context(), budget, metav1.CreateOptions{})
	require.NoError(t, err)
	r.untilPhase("one", v1.PodRunning)
	r.untilPhase("two", v1.PodRunning)
	evict := func(name string) error {
		return r.api.PolicyV1().Evictions(r.name).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.name}})
	}
	require.NoError(t, evict("one"))
	r.untilGone("one")
	r.until("the budget counts the pod", func() error {
		b, err := r.api.PolicyV1().PodDisruptionBudgets(r.name).Get(t.Context(), "two", metav1.GetOptions{})
		if err == nil && b.Status.CurrentHealthy != 1 {
			err = fmt.Errorf("%+v", b.Status)
		}
		return err
	})
	require.True(t, apierrors.IsTooManyRequests(evict("two")), "the budget, which counts Ready pods, forbids it")
}

func clusterNamespace(t *testing.T, r *room) {
	_, err := r.api.AppsV1().Deployments(r.name).Create(t.Context(), deployment("web", 3, "trap 'exit 0' TERM; sleep 3600 & wait"), metav1.CreateOptions{})
	require.NoError(t, err)
	r.make("done", func() v1.PodSpec { s := spec("exit 0"); s.RestartPolicy = v1.RestartPolicyNever; return s }())
	r.make("crashes", spec("exit 1"))
	r.untilAvailable("web", 3)
	r.untilPhase("done", v1.PodSucceeded)
	require.NoError(t, r.api.CoreV1().Namespaces().Delete(t.Context(), r.name, metav1.DeleteOptions{}))
	r.until("the namespace is gone", func() error {
		ns, err := r.api.CoreV1().Namespaces().Get(t.Context(), r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%v, %v", ns.Status, err)
	})
	r.until("the runtime has nothing of it", func() error {
		if left := r.running(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

func clusterEnvironment(t *testing.T, r *room) {
	core := r.api.CoreV1()
	_, err := core.ConfigMaps(r.name).Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOUR": "blue"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.Services(r.name).Create(t.Context(), &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s := spec("echo $COLOUR $PASSWORD $SHOP_SERVICE_PORT $KUBERNETES_SERVICE_PORT $HOST; trap 'exit 0' TERM; sleep 3600 & wait")
	s.EnableServiceLinks = new(true)
	s.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
	s.Containers[0].Env = []v1.EnvVar{
		{Name: "PASSWORD", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "late"}, Key: "p"}}},
		{Name: "HOST", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
	}
	r.make("env", s)
	// The secret does not exist yet: the pod waits, and reports the reason.
	r.until("the pod reports the missing secret", func() error {
		pod, err := r.pod("env")
		if err != nil {
			return err
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == "CreateContainerConfigError" && strings.Contains(c.State.Waiting.Message, "late") {
				return nil
			}
		}
		return fmt.Errorf("%v", pod.Status.ContainerStatuses)
	})
	_, err = core.Secrets(r.name).Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late"}, StringData: map[string]string{"p": "xyz"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod := r.untilPhase("env", v1.PodRunning)
	r.until("it has its environment", func() error {
		if printed := r.logOf(pod); printed != "blue xyz 80 443 node\n" {
			return fmt.Errorf("%q", printed)
		}
		return nil
	})
	r.untilEvent("env", "Started")
}

func clusterBadInput(t *testing.T, r *room) {
	for name, c := range map[string]struct {
		change func(*v1.PodSpec)
		reason string
	}{
		"too-big": {func(s *v1.PodSpec) {
			s.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1000")}
		}, "OutOfcpu"},
		"nowhere": {func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"rack": "8"} }, "NodeAffinity"},
		"sysctl": {func(s *v1.PodSpec) {
			s.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}, "SysctlForbidden"},
	} {
		s := spec("sleep 3600")
		s.NodeName = "node" // past the scheduler
		c.change(&s)
		r.make(name, s)
		pod := r.untilPhase(name, v1.PodFailed)
		assert.Equal(t, c.reason, pod.Status.Reason, name)
		assert.NotEmpty(t, pod.Status.Message)
		r.untilEvent(name, c.reason)
		r.delete(name, -1)
		r.untilGone(name)
	}
	// One that can't be started is tried now and then, not all the time.
	s := spec("sleep 3600")
	s.Containers[0].Image = "kubeparts.test/none:1"
	s.Containers[0].ImagePullPolicy = v1.PullNever
	r.make("imageless", s)
	r.untilEvent("imageless", "ErrImageNeverPull")
	before, err := r.pod("imageless")
	require.NoError(t, err)
	versions := map[string]bool{before.ResourceVersion: true}
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		now, err := r.pod("imageless")
		require.NoError(t, err)
		versions[now.ResourceVersion] = true
	}
	assert.LessOrEqual(t, len(versions), 3, "a status that does not change is not written")
	r.delete("imageless", -1)
	r.untilGone("imageless")
}

// clusterStranger: an agent without permissions reports that, and its retries are bounded.
func clusterStranger(t *testing.T, r *room) {
	forbidden := func() (n float64) {
		data, err := r.api.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		require.NoError(t, err)
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `code="403"`) {
				fields := strings.Fields(line)
				count, err := strconv.ParseFloat(fields[len(fields)-1], 64)
				require.NoError(t, err)
				n += count
			}
		}
		return n
	}
	a := newAgent(t, "process")
	a.flags = []string{"--kubeconfig=" + r.control.UserKubeconfig("stranger"), "--hostname-override=stranger", "--port=-1", "--healthz-port=-1"}
	before := forbidden()
	a.start()
	a.eventually("the agent reports the error", func() bool {
		return strings.Contains(a.out.String(), `User \"stranger\" cannot`)
	})
	time.Sleep(15 * time.Second)
	// Other clients may be rejected as well, now and then.
	lab.Below(t, "rejected calls in 15 s", forbidden()-before, 60)
	_, err := r.api.CoreV1().Nodes().Get(t.Context(), "stranger", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))
}

// clusterMended: from the watch to status.Manager and back (st-71).
func clusterMended(t *testing.T, r *room) {
	r.make("edited", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	r.untilPhase("edited", v1.PodRunning)
	patch := `{"status":{"phase":"Pending","reason":"Meddled"}}`
	_, err := r.api.CoreV1().Pods(r.name).Patch(t.Context(), "edited", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	pod := r.untilPhase("edited", v1.PodRunning)
	assert.Empty(t, pod.Status.Reason)
	r.delete("edited", -1)
	r.untilGone("edited")
}

// clusterToken: the API server identifies a pod by its token.
func clusterToken(t *testing.T, r *room) {
	s := spec("cd /var/run/secrets/kubernetes.io/serviceaccount && cat namespace && echo && wc -c < ca.crt && cat token && echo; trap 'exit 0' TERM; sleep 3600 & wait")
	s.AutomountServiceAccountToken = nil
	r.make("identity", s)
	pod := r.untilPhase("identity", v1.PodRunning)
	var printed []string
	r.until("it has read its token", func() error {
		if printed = strings.Fields(r.logOf(pod)); len(printed) != 3 {
			return fmt.Errorf("%d words", len(printed))
		}
		return nil
	})
	assert.Equal(t, r.name, printed[0])
	assert.NotEqual(t, "0", printed[1])
	tokens, err := auth.NewTokens(auth.TokensConfig{Reviews: r.api.AuthenticationV1().TokenReviews()})
	require.NoError(t, err)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	req.Header.Set("Authorization", "Bearer "+printed[2])
	user, err := tokens.Authenticate(req)
	require.NoError(t, err)
	assert.Equal(t, "system:serviceaccount:"+r.name+":default", user.Name)
	assert.Equal(t, []string{"identity"}, user.Extra["authentication.kubernetes.io/pod-name"])
	access, err := auth.NewAccess(auth.AccessConfig{Reviews: r.api.AuthorizationV1().SubjectAccessReviews()})
	require.NoError(t, err)
	for name, want := range map[*auth.User]bool{user: false, {Name: "lab", Groups: []string{"system:masters"}}: true} {
		d, err := access.Authorize(t.Context(), name, auth.Attributes{Verb: "get", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: "node"})
		require.NoError(t, err)
		assert.Equal(t, want, d.Allowed)
	}
	r.delete("identity", -1)
	r.untilGone("identity")
}
