package kubelet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

func kubectlLogs(d desk) {
	pod := spec("n=$(cat /kept/n 2>/dev/null || echo 0); echo instance $n; echo and more; echo $((n+1)) > /kept/n; [ $n = 0 ] && exit 1; trap 'exit 0' TERM; sleep 3600 & wait")
	pod.Volumes = []v1.Volume{{Name: "kept", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "kept", MountPath: "/kept"}}
	d.make("again", pod)
	d.until("it was started again", func() error {
		if was := d.with("", "logs", "again"); !strings.Contains(was.out, "instance 1\nand more\n") {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	assert.Equal(d.t, "instance 0\nand more\n", d.ok("logs", "again", "--previous"))
	assert.Equal(d.t, "instance 1\nand more\n", d.ok("logs", "again"))
	assert.Equal(d.t, "and more\n", d.ok("logs", "again", "--tail=1"))
	assert.Empty(d.t, d.ok("logs", "again", "--tail=0"))
	assert.Equal(d.t, "instance 1\nand more\n", d.ok("logs", "again", "--since=1h"))
	assert.Empty(d.t, d.ok("logs", "again", "--since-time="+time.Now().Add(time.Hour).Format(time.RFC3339)))
	assert.Equal(d.t, "instan", d.ok("logs", "again", "--limit-bytes=6"))
	assert.Regexp(d.t, `^\d{4}-\d\d-\d\dT\S+ instance 1\n`, d.ok("logs", "again", "--timestamps"))
	assert.Contains(d.t, d.with("", "logs", "again", "-c", "db").err, "container db is not valid for pod again")
	d.make("waits", v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "kubeparts.test/none:1", ImagePullPolicy: v1.PullNever}}})
	d.until("the reason for the missing log is reported", func() error {
		if was := d.with("", "logs", "waits"); !strings.Contains(was.err, "waiting to start") {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	// A follower gets lines that are written while it follows, on both streams. (The
	// order of lines written at the same time is undefined.)
	_, printed := d.background("logs", "--follow", "again", "--tail=0")
	d.until("new lines arrive", func() error {
		d.ok("exec", "again", "--", "sh", "-c", "echo later > /proc/1/fd/2")
		if !strings.Contains(printed.String(), "later\n") {
			return fmt.Errorf("%q", printed)
		}
		return nil
	})
}

// However often a log is rotated, a follower gets each line once, and so does a client
// that reads the log afterwards.
func kubectlLogsRotated(d desk) {
	const lines = 5000
	pod := spec(fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i %s; i=$((i+1)); [ $((i %% 100)) = 0 ] && sleep 0.2; done; exit 0", lines, strings.Repeat("x", 60)))
	pod.RestartPolicy = v1.RestartPolicyNever
	d.make("writer", pod)
	d.until("it runs", func() error {
		if was := d.with("", "logs", "writer"); was.out == "" {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	whole := func(out string) {
		got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		for i, line := range got {
			require.True(d.t, strings.HasPrefix(line, fmt.Sprintf("line %d x", i)), "line %d of %d is %.40q", i, len(got), line)
		}
		require.Len(d.t, got, lines)
	}
	whole(d.ok("logs", "--follow", "writer"))
	done := d.untilPhase("writer", v1.PodSucceeded)
	whole(d.ok("logs", "writer"))
	files, err := os.ReadDir(filepath.Dir(d.logFile(*done, "main", 0)))
	require.NoError(d.t, err)
	require.Greater(d.t, len(files), 2, "it was rotated")
	assert.Equal(d.t, 3000, strings.Count(d.ok("logs", "writer", "--tail=3000"), "\n"))
}

// A static pod is addressed by the name of its mirror pod.
func kubectlStatic(d desk) {
	d.write("kept.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: kept, namespace: %s}\nspec:\n  containers:\n"+
		"  - {name: main, image: %q, command: [sh, -c, \"echo kept; trap 'exit 0' TERM; sleep 3600 & wait\"]}\n", d.name, lab.Busybox))
	d.untilPhase("kept-node", v1.PodRunning)
	d.until("its log", func() error { // la-5
		if was := d.with("", "logs", "kept-node"); was.out != "kept\n" {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	assert.Equal(d.t, "here\n", d.ok("exec", "kept-node", "--", "echo", "here"))
	d.remove("kept.yaml")
	d.untilGone("kept-node")
}

// The same verbs on a node whose containers are plain processes: their streams end in
// the agent.
func kubectlProcesses(d desk) {
	a := newAgent(d.t, "process")
	a.flags = []string{
		"--kubeconfig=" + d.control.NodeKubeconfig("plain"), "--hostname-override=plain", "--port=-1", "--healthz-port=-1", "--client-ca-file=" + d.caFile(d.control),
		"--register-with-taints=for=processes:NoSchedule",
	}
	a.start()
	d.nodeReady("plain")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(d.t, free.Close())
	pod := spec(fmt.Sprintf("echo hello; busybox nc -ll -p %d -e cat & trap 'kill $!; exit 0' TERM; wait", port))
	pod.NodeName = "plain"
	pod.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	d.make("web", pod)
	d.untilPhase("web", v1.PodRunning)
	d.until("its log", func() error {
		if was := d.with("", "logs", "web"); was.out != "hello\n" {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	d.each(func(d desk) {
		was := d.with("", "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
		assert.Equal(d.t, "out\n", was.out)
		assert.Contains(d.t, was.err, "err\n")
		assert.Equal(d.t, 42, was.code)
		in := strings.Repeat("x", 1_000_000)
		assert.Equal(d.t, cmdResult{out: "1000000\n"}, d.with(in, "exec", "-i", "web", "--", "wc", "-c"))
		was = d.with("", "attach", "web")
		assert.NotZero(d.t, was.code)
		assert.Contains(d.t, was.err, "a process has no input")
		addr := d.forwarded("web", port)
		echoes(d.t, addr, 10)
	})
	d.ok("delete", "pod", "web", "--wait", "--timeout="+patience.String())
}
