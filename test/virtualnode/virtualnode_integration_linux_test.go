package virtualnode

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manifest returns a workload whose pods tolerate the taint of the node.
func manifest(kind, version, name, fields, podFields, command string) string {
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {name: %s}
spec:
  %s
  template:
    metadata: {labels: {app: %s}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations: [{key: kubeparts.io/runtime, value: machines, effect: NoSchedule}]
      %s
      containers: [{name: main, image: shell, command: [sh, -c, %q]}]
`, version, kind, name, fields, name, podFields, command)
}

func selected(name, more string) string {
	return fmt.Sprintf("selector: {matchLabels: {app: %s}}\n  %s", name, more)
}

// The workloads of a cluster on machines, with kubectl. The parts build on each other.
func TestIntegrationClusterWorkloadsOnMachines(t *testing.T) {
	w := newWorld(t)
	assert.Equal(t, "machines", w.ok("get", "node", "vms", "-o", `jsonpath={.metadata.labels.kubeparts\.io/runtime}`))
	assert.Equal(t, "machines://7.1 64 256Gi", w.ok("get", "node", "vms", "-o", "jsonpath={.status.nodeInfo.containerRuntimeVersion} {.status.capacity.cpu} {.status.allocatable.memory}"))
	rollout := func(what string) { w.ok("rollout", "status", what, "--timeout="+patience.String()) }

	t.Run("Deployment", func(t *testing.T) {
		w.apply(manifest("Deployment", "apps/v1", "web", selected("web", "replicas: 3"), "", "echo version $VERSION; while :; do sleep 1; done"))
		rollout("deployment/web")
		w.ok("set", "env", "deployment/web", "VERSION=2")
		rollout("deployment/web")
		assert.Equal(t, "3", w.ok("get", "deployment/web", "-o", "jsonpath={.status.updatedReplicas}"))
	})
	t.Run("StatefulSet", func(t *testing.T) {
		w.apply(manifest("StatefulSet", "apps/v1", "db", selected("db", "replicas: 2\n  serviceName: db"), "", "while :; do sleep 1; done"))
		rollout("statefulset/db")
		assert.Equal(t, "db-0 db-1", w.ok("get", "pods", "-l", "app=db", "--sort-by=.metadata.name", "-o", "jsonpath={.items[*].metadata.name}"))
	})
	t.Run("Job", func(t *testing.T) {
		w.apply(manifest("Job", "batch/v1", "sum", "completions: 4\n  parallelism: 2", "restartPolicy: Never", "echo 1"))
		w.ok("wait", "job/sum", "--for=condition=Complete", "--timeout="+patience.String())
		assert.Equal(t, "4", w.ok("get", "job/sum", "-o", "jsonpath={.status.succeeded}"))
	})
	t.Run("DaemonSet", func(t *testing.T) {
		agent := manifest("DaemonSet", "apps/v1", "agent", selected("agent", ""), "", "while :; do sleep 1; done")
		w.apply(agent)
		w.apply(strings.ReplaceAll(strings.ReplaceAll(agent, "agent", "other"), "kubeparts.io/runtime", "example.com/other"))
		rollout("daemonset/agent")
		assert.Equal(t, "1 0", w.ok("get", "daemonset/agent", "-o", "jsonpath={.status.numberReady}")+" "+w.ok("get", "daemonset/other", "-o", "jsonpath={.status.desiredNumberScheduled}"), "without a toleration no pod lands there")
	})
	t.Run("Logs", func(t *testing.T) {
		file := filepath.Join(w.dir, "more")
		w.apply(manifest("Deployment", "apps/v1", "log", selected("log", "replicas: 1"), "", "echo first; until [ -e "+file+" ]; do sleep 0.1; done; echo second; while :; do sleep 1; done"))
		rollout("deployment/log")
		out := w.background(t, "logs", "-f", "deployment/log")
		w.until("the first line", func() error { return contains(out, "first\n") })
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		w.until("the second line", func() error { return contains(out, "second\n") })
	})
	t.Run("Exec", func(t *testing.T) {
		out, err := w.run("input", "exec", "-i", "db-0", "--", "sh", "-c", "cat; echo oops >&2; exit 3")
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 3, exit.ExitCode())
		assert.Equal(t, "input", out)
		assert.ErrorContains(t, err, "oops")
	})
	t.Run("Attach", func(t *testing.T) { // the service has no such method
		_, err := w.run("", "attach", "db-0")
		assert.ErrorContains(t, err, "the backend is no Attacher")
	})
	t.Run("Debug", func(t *testing.T) {
		w.ok("debug", "db-0", "-c", "debugger", "--image=shell", "--", "sh", "-c", "echo debugged")
		w.until("the output of the ephemeral container", func() error {
			out, err := w.run("", "logs", "db-0", "-c", "debugger")
			if err == nil && out != "debugged\n" {
				err = fmt.Errorf("%q", out)
			}
			return err
		})
	})
	t.Run("PortForward", func(t *testing.T) {
		port := freePort(t)
		w.apply(manifest("Deployment", "apps/v1", "echo", selected("echo", "replicas: 1"), "", fmt.Sprintf("exec busybox nc -ll -p %d -e cat", port)))
		rollout("deployment/echo")
		out := w.background(t, "port-forward", "deployment/echo", fmt.Sprintf(":%d", port))
		var at []string
		w.until("the port is forwarded", func() error {
			if at = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) ->`).FindStringSubmatch(out.String()); at == nil {
				return fmt.Errorf("%q", out.String())
			}
			return nil
		})
		conn, err := net.Dial("tcp", at[1])
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = conn.Write([]byte("hello"))
		require.NoError(t, err)
		got := make([]byte, 5)
		_, err = io.ReadFull(conn, got)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(got))
	})
	t.Run("Usage", func(t *testing.T) { // what metrics-server reads for kubectl top
		w.until("the metrics", func() error {
			out, err := w.run("", "get", "--raw", "/api/v1/nodes/vms/proxy/metrics/resource")
			for _, part := range []string{"\nnode_cpu_usage_seconds_total ", "\nnode_memory_working_set_bytes ", `pod_memory_working_set_bytes{namespace="default",pod="db-0"} 6.7108864e+07`, `container_cpu_usage_seconds_total{container="main",namespace="default",pod="db-1"} `} {
				if err == nil && !strings.Contains(out, part) {
					err = fmt.Errorf("no %q in:\n%s", part, out)
				}
			}
			return err
		})
		assert.Contains(t, w.ok("get", "--raw", "/api/v1/nodes/vms/proxy/stats/summary"), `"node":{"nodeName":"vms"`)
	})
	t.Run("Top", func(t *testing.T) {
		if os.Getenv("KUBEPARTS_OBSERVE") != "1" {
			t.Skip("metrics-server takes long to build: bash .ci/run observe does so, and runs this test")
		}
		w.control.MetricsServer()
		w.until("kubectl top shows the pods of the node, and the node", func() error {
			pods, err := w.run("", "top", "pods", "--no-headers")
			if err == nil && !regexp.MustCompile(`(?m)^db-0 +\d+m +64Mi *$`).MatchString(pods) {
				err = fmt.Errorf("top pods:\n%s", pods)
			}
			if err != nil {
				return err
			}
			node, err := w.run("", "top", "node", "vms", "--no-headers")
			if err == nil && !regexp.MustCompile(`^vms +\d+m +\d+% +\d+Mi`).MatchString(node) {
				err = fmt.Errorf("top node:\n%s", node)
			}
			return err
		})
	})
	t.Run("Drain", func(t *testing.T) {
		w.ok("delete", "job/sum")
		w.ok("drain", "vms", "--ignore-daemonsets", "--timeout="+patience.String())
		assert.Contains(t, w.ok("get", "pods", "--field-selector=spec.nodeName=vms", "-o", "name"), "pod/agent-")
		assert.Equal(t, 1, strings.Count(w.ok("get", "pods", "--field-selector=spec.nodeName=vms", "-o", "name"), "pod/"), "the pod of the DaemonSet remains")
		w.ok("delete", "deployment,statefulset,daemonset", "--all")
		w.until("no machines", func() error {
			all, err := w.machines()
			if err == nil && all != "[]" {
				err = fmt.Errorf("machines %s", all)
			}
			return err
		})
	})
}

func contains(out *output, part string) error {
	if !strings.Contains(out.String(), part) {
		return fmt.Errorf("%q", out.String())
	}
	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// The node is killed at calls that change the VM service, before a call takes effect or after it and before the
// response. The service outlives it. Each container of each pod runs once.
func TestIntegrationClusterANodeOfMachinesIsKilledAtCalls(t *testing.T) {
	w := newWorld(t)
	const points, seed = 24, 40
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range points {
		name, file := fmt.Sprint("pod-", n), filepath.Join(w.dir, fmt.Sprint("runs-", n))
		w.proxy.killAt(1+random.IntN(8), n%2 == 1) // four machines are created and started
		w.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeName: vms
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  initContainers:
  - {name: init, image: shell, command: [sh, -c, "echo init >> %[2]s"]}
  containers:
  - {name: fails, image: shell, command: [sh, -c, "echo fails >> %[2]s; [ $(grep -c fails %[2]s) = 2 ]"]}
  - {name: main, image: shell, command: [sh, -c, "echo main >> %[2]s; sleep 0.5"]}
`, name, file))
		var call string
		select {
		case call = <-w.proxy.killed:
		case <-time.After(patience):
			t.Fatal("the node was not killed")
		}
		w.kill()
		w.start()
		w.until(name+" succeeds", func() error {
			phase, err := w.run("", "get", "pod", name, "-o", "jsonpath={.status.phase}")
			if err == nil && phase != "Succeeded" {
				err = fmt.Errorf("it is %s", phase)
			}
			return err
		})
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		runs := map[string]int{}
		for _, line := range strings.Fields(string(text)) {
			runs[line]++
		}
		assert.Equal(t, map[string]int{"init": 1, "fails": 2, "main": 1}, runs, "point %d: killed at %s", n, call)
		assert.Equal(t, "1", w.ok("get", "pod", name, "-o", `jsonpath={.status.containerStatuses[?(@.name=="fails")].restartCount}`), "point %d", n)
		w.ok("delete", "pod", name, "--timeout="+patience.String())
		t.Logf("point %d: killed at %s, after=%v", n, call, n%2 == 1)
	}
}
