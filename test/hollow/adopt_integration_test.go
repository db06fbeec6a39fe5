package hollow

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

const behaviors = `
rules:
- labels: app=web
  behavior: log="hello from %d",command="ls /";stdout="bin etc",cpu=250m,memory=64Mi
- labels: app=crash
  behavior: exit=1@2s,crashes=2
`

// A shared cluster has nodes that the test creates, and processes of examples/hollow that run them.
type shared struct {
	*testing.T
	dir, binary, ip string
	kubeconfig      string // of the processes
	control         *lab.ControlPlane
	kubectl         *lab.Kubectl
	api             kubernetes.Interface
	nodes           int
}

func newShared(t *testing.T, nodes int) *shared {
	s := &shared{T: t, dir: t.TempDir(), nodes: nodes, control: lab.NewControlPlane(t, lab.ControlPlaneConfig{NodeMonitorGrace: time.Minute})}
	var err error
	s.ip, err = labenv.OwnAddress()
	require.NoError(t, err)
	s.kubectl = lab.NewKubectl(t, s.control.Kubeconfig)
	s.api, _, err = labenv.NewClient(s.control.Kubeconfig)
	require.NoError(t, err)
	s.binary = s.dir + "/hollow"
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, "github.com/kubeparts/kubeparts/examples/hollow").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(s.dir+"/behaviors.yaml", []byte(behaviors), 0o644))
	// The processes have the permissions of deploy/hollow, whose other objects the API server accepts.
	s.prints("apply", "-k", "../../deploy/hollow/base")
	for _, dir := range []string{"../../deploy/hollow", "../../deploy/hollow/job"} {
		assert.Regexp(t, `(deployment.apps|job.batch)/hollow created \(server dry run\)`, s.prints("apply", "--dry-run=server", "-k", dir))
	}
	s.kubeconfig = s.control.UserKubeconfig("system:serviceaccount:hollow:hollow", "system:serviceaccounts", "system:serviceaccounts:hollow")
	for i := range nodes {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("kwok-", i), Labels: map[string]string{"type": "kwok", v1.LabelHostname: fmt.Sprint("kwok-", i)}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		}}
		_, err := s.api.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return s
}

// start starts a process of the group.
func (s *shared) start(name string) *labenv.Process {
	s.Helper()
	p, err := labenv.Start(s.binary, []string{
		"--adopt", "--kubeconfig=" + s.kubeconfig, "--behaviors=" + s.dir + "/behaviors.yaml", "--ip=" + s.ip,
		"--group=hollow", "--namespace=hollow", "--identity=" + name,
	}, s.dir+"/"+name+".log")
	require.NoError(s, err)
	s.Cleanup(func() {
		_ = p.Kill() // it may have exited
		if s.Failed() {
			s.Logf("%s:\n%s", name, p.Tail(30))
		}
	})
	return p
}

// run creates a pod for the scheduler.
func (s *shared) run(name, app string) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       v1.PodSpec{NodeSelector: map[string]string{"type": "kwok"}, Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
	require.Eventually(s, func() bool { // the service account must exist
		_, err := s.api.CoreV1().Pods("default").Create(s.Context(), pod, metav1.CreateOptions{})
		return err == nil
	}, time.Minute, 100*time.Millisecond)
}

// until waits until the function returns an empty text.
func (s *shared) until(what string, check func() string) time.Duration {
	s.Helper()
	began := time.Now()
	err := labenv.Until(s.Context(), what, 3*time.Minute, func() error {
		if left := check(); left != "" {
			return fmt.Errorf("%s", left)
		}
		return nil
	})
	require.NoError(s, err)
	return time.Since(began)
}

// states returns the container ID and the restart count of each pod.
func (s *shared) states() map[string]string {
	list, err := s.api.CoreV1().Pods("default").List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	out := map[string]string{}
	for _, p := range list.Items {
		out[p.Name] = fmt.Sprint(p.Status.Phase, " ", p.Spec.NodeName, " ", p.Status.PodIP)
		for _, c := range p.Status.ContainerStatuses {
			out[p.Name] += fmt.Sprint(" ", c.ContainerID, " restarts=", c.RestartCount, " ready=", c.Ready)
		}
	}
	return out
}

// lost returns the nodes whose ports refuse connections: those of a process that has exited.
func (s *shared) lost() map[string]bool {
	list, err := s.api.CoreV1().Nodes().List(s.Context(), metav1.ListOptions{})
	require.NoError(s, err)
	out := map[string]bool{}
	for _, n := range list.Items {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", n.Status.Addresses[0].Address, n.Status.DaemonEndpoints.KubeletEndpoint.Port), 10*time.Second)
		if err != nil {
			out[n.Name] = true
			continue
		}
		_ = conn.Close() // nothing was sent
	}
	return out
}

// renewed returns which leases of nodes were not renewed since a time; nil are all nodes.
func (s *shared) renewed(since time.Time, nodes map[string]bool) string {
	list, err := s.api.CoordinationV1().Leases("kube-node-lease").List(s.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	if len(list.Items) < s.nodes {
		return fmt.Sprintf("%d of %d leases exist", len(list.Items), s.nodes)
	}
	var old []string
	for _, l := range list.Items {
		if (nodes == nil || nodes[l.Name]) && !l.Spec.RenewTime.After(since) {
			old = append(old, l.Name)
		}
	}
	return strings.Join(old, " ")
}

// prints returns the output of kubectl, also if it fails.
func (s *shared) prints(args ...string) string {
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	out, err := s.kubectl.Command(ctx, args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s%v", out, err)
	}
	return string(out)
}

// Three processes share nodes that others create; one is killed, one ends. No pod loses its state, and
// kubectl reaches the pods wherever their nodes run.
func TestIntegrationNodesOfOthersAreSharedByProcesses(t *testing.T) {
	const nodes, pods = 30, 60
	s := newShared(t, nodes)
	first, second, third := s.start("p0"), s.start("p1"), s.start("p2")
	t.Log("leases of all nodes after", s.until("leases", func() string { return s.renewed(time.Time{}, nil) }))
	for i := range pods {
		s.run(fmt.Sprint("web-", i), "web")
	}
	s.run("crash", "crash")
	s.until("pods run", func() string {
		for name, state := range s.states() {
			if !strings.HasPrefix(state, "Running ") || !strings.HasSuffix(state, map[bool]string{true: "restarts=2 ready=true", false: "ready=true"}[name == "crash"]) {
				return name + " is " + state
			}
		}
		return ""
	})
	works := func() {
		t.Helper()
		for _, pod := range []string{"web-0", "web-17", "web-42"} {
			assert.Equal(t, "hello from 1\n", s.prints("logs", pod))
			assert.Equal(t, "bin etc", s.prints("exec", pod, "--", "ls", "/"))
		}
		assert.Contains(t, s.prints("get", "--raw", "/api/v1/nodes/kwok-7/proxy/stats/summary"), `"nodeName":"kwok-7"`)
		assert.Contains(t, s.prints("get", "--raw", "/api/v1/nodes/kwok-8/proxy/metrics/resource"), "node_memory_working_set_bytes ")
	}
	works()

	before := s.states()
	require.NoError(t, first.Kill())
	killed := time.Now()
	lost := s.lost()
	require.NotEmpty(t, lost)
	s.until("leases go on after a process was killed", func() string { return s.renewed(killed, lost) })
	t.Logf("one of three processes was killed: the leases of its %d nodes go on after %v", len(lost), time.Since(killed).Round(100*time.Millisecond))
	assert.Equal(t, before, s.states())
	works()

	ended := time.Now()
	require.NoError(t, second.Stop(30*time.Second))
	stopped := time.Now()
	lost = s.lost()
	s.until("leases go on after a process has ended", func() string { return s.renewed(stopped, lost) })
	t.Logf("one of two processes got SIGTERM: the leases of its %d nodes go on after %v", len(lost), time.Since(ended).Round(100*time.Millisecond))
	assert.Equal(t, before, s.states())
	works()
	assert.Contains(t, s.prints("get", "events", "--field-selector=involvedObject.name=web-0"), "Started")
	for _, p := range []*labenv.Process{first, second, third} {
		assert.NotContains(t, p.Tail(1000), "forbidden", "deploy/hollow has all permissions")
	}
}
