package kubelet

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// kubectl is used on a cluster with this agent as a node.
func TestIntegrationClusterKubectl(t *testing.T) {
	config := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+
		"containerLogMaxSize: 64Ki\ncontainerLogMaxFiles: 50\ncontainerLogMonitorInterval: 3s\nevictionHard: {} # however full the disk is\n"), 0o600))
	w := onCluster(t, "--config="+config)
	kubectl := lab.NewKubectl(t, w.control.Kubeconfig)
	t.Run("together", func(t *testing.T) {
		for name, test := range map[string]func(desk){
			"run, get and describe": kubectlRun,
			"logs":                  kubectlLogs,
			"logs across rotations": kubectlLogsRotated,
			"exec":                  kubectlExec,
			"exec in a terminal":    kubectlTerminal,
			"attach":                kubectlAttach,
			"port-forward":          kubectlForward,
			"cp":                    kubectlCopy,
			"debug":                 kubectlDebug,
			"delete with grace":     kubectlDelete,
			"usage of the node":     kubectlMetrics,
			"what a scraper gets":   kubectlScrapes,
			"a static pod":          kubectlStatic,
			"a certificate to show": kubectlServing,
			"anonymous access":      kubectlAnonymous,
			"a node of processes":   kubectlProcesses,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(desk{room: w.room(t, "k-"+strings.NewReplacer(" ", "-", ",", "").Replace(name)), kubectl: kubectl})
			})
		}
	})
	t.Run("cordon and drain", func(t *testing.T) { kubectlDrain(desk{room: w.room(t, "k-drain"), kubectl: kubectl}) })
}

func kubectlRun(d desk) {
	d.sleeper("web", "echo hello")
	wide := d.ok("get", "pod", "web", "-o", "wide", "--no-headers")
	assert.Regexp(d.t, `^web +1/1 +Running +0 .* 10\.\S+ +node `, wide)
	text := d.ok("describe", "pod", "web")
	for _, line := range []string{
		`Node: +node/`, `Status: +Running`, `Container ID: +containerd://`, `Ready: +True`, `QoS Class: +BestEffort`,
		`Scheduled`, `Pulled .* already present`, `Created `, `Started `,
	} {
		assert.Regexp(d.t, regexp.MustCompile(line), text)
	}
	node := d.ok("describe", "node", "node")
	assert.Regexp(d.t, `Ready +True`, node)
	assert.Contains(d.t, node, d.name+" ", "its pods are listed")
	assert.Regexp(d.t, `^node +Ready`, d.ok("get", "nodes", "--no-headers"))
	assert.Subset(d.t, strings.Fields(d.ok("get", "node", "node", "-o", "jsonpath={.status.declaredFeatures[*]}")), []string{
		"ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits",
	})
	// A pod that runs to completion, in the foreground.
	was := d.with("typed", "run", "once", "--image="+lab.Busybox, "--restart=Never", "--rm", "--stdin", "--quiet", "--command", "--", "sh", "-c", "cat; exit 7")
	assert.Equal(d.t, 7, was.code, "%+v", was)
	assert.Contains(d.t, was.out, "typed")
	assert.Contains(d.t, d.with("", "get", "pod", "once").err, "NotFound")
}

func kubectlExec(d desk) {
	d.sleeper("web", "")
	d.each(func(d desk) {
		was := d.with("", "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 42")
		assert.Equal(d.t, "out\n", was.out)
		assert.Contains(d.t, was.err, "err\n")
		assert.Equal(d.t, 42, was.code)
		for _, size := range []int{1, 100_000, 3_000_000} {
			in := strings.Repeat("x", size)
			was = d.with(in, "exec", "-i", "web", "--", "sh", "-c", "wc -c; echo end >&2")
			assert.Equal(d.t, cmdResult{out: fmt.Sprintf("%d\n", size), err: "end\n"}, was)
		}
		was = d.with("there and back", "exec", "-i", "web", "--", "cat")
		assert.Equal(d.t, cmdResult{out: "there and back"}, was)
		out := d.ok("exec", "web", "-c", "web", "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done")
		assert.Len(d.t, strings.Fields(out), 20000)
		assert.True(d.t, strings.HasSuffix(out, "\n20000\n"))
		assert.Contains(d.t, d.with("", "exec", "web", "-c", "db", "--", "id").err, "container db is not valid for pod web")
		was = d.with("", "exec", "web", "--", "no-such-program")
		assert.NotZero(d.t, was.code)
		assert.Contains(d.t, was.err, "no-such-program")
	})
}

func kubectlTerminal(d desk) {
	d.sleeper("web", "")
	d.each(func(d desk) {
		cmd := d.command("exec", "-it", "web", "--", "sh")
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 111})
		require.NoError(d.t, err)
		defer terminal.Close()
		printed := new(output)
		read := make(chan struct{})
		go func() { defer close(read); _, _ = io.Copy(printed, terminal) }()
		until := func(text string) {
			d.t.Helper()
			d.until(text, func() error {
				if !strings.Contains(printed.String(), text) {
					return fmt.Errorf("%q", printed)
				}
				return nil
			})
		}
		until("# ")
		_, err = io.WriteString(terminal, "tty; echo si''ze $(stty size)\n")
		require.NoError(d.t, err)
		until("/dev/pts/")
		until("size 33 111")
		require.NoError(d.t, pty.Setsize(terminal, &pty.Winsize{Rows: 44, Cols: 122}))
		require.NoError(d.t, cmd.Process.Signal(syscall.SIGWINCH))
		d.until("the new size", func() error {
			if _, err := io.WriteString(terminal, "echo si''ze $(stty size)\n"); err != nil {
				return err
			}
			if !strings.Contains(printed.String(), "size 44 122") {
				return fmt.Errorf("%q", printed)
			}
			return nil
		})
		// The program prints, not the terminal's shell, which ignores a signal while it starts the program.
		_, err = io.WriteString(terminal, `sh -c 'echo be""gun; sleep 3600'`+"\n")
		require.NoError(d.t, err)
		until("begun")
		_, err = io.WriteString(terminal, "\x03") // Ctrl-C is for the program there
		require.NoError(d.t, err)
		_, err = io.WriteString(terminal, "echo co''de $?; exit 3\n")
		require.NoError(d.t, err)
		until("code 130")
		_ = cmd.Wait()
		<-read
		assert.Equal(d.t, 3, cmd.ProcessState.ExitCode())
	})
}

func kubectlAttach(d desk) {
	d.each(func(d desk) {
		name := strings.ToLower(filepath.Base(d.t.Name()))
		pod := spec("while read line; do echo \"got: $line\"; done; echo bye; exit 5")
		pod.Containers[0].Stdin, pod.Containers[0].StdinOnce = true, true
		pod.RestartPolicy = v1.RestartPolicyNever
		d.make(name, pod)
		d.untilPhase(name, v1.PodRunning)
		was := d.with("one\ntwo\n", "attach", "-i", name)
		assert.Equal(d.t, "got: one\ngot: two\nbye\n", was.out, "%+v", was)
		d.untilPhase(name, v1.PodFailed)

		d.sleeper(name+"-ticks", "(while sleep 0.2; do echo tick; done) &")
		_, printed := d.background("attach", name+"-ticks")
		d.until("its output arrives", func() error {
			if strings.Count(printed.String(), "tick\n") < 3 {
				return fmt.Errorf("%q", printed)
			}
			return nil
		})
	})
}

func kubectlForward(d desk) {
	// The number of l is the length of nc's queue: the kernel resets connections that wait for a place in it for a minute.
	d.sleeper("echo", "nc -"+strings.Repeat("l", 64)+" -p 8080 -e cat &")
	d.until("it listens", func() error {
		if was := d.with("", "exec", "echo", "--", "netstat", "-ltn"); !strings.Contains(was.out, ":8080 ") {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	d.each(func(d desk) {
		addr := d.forwarded("echo", 8080)
		echoes(d.t, addr, 1)
		echoes(d.t, addr, 40)
		// The error of a port without a listener names it.
		_, printed := d.background("port-forward", "pod/echo", "--address=127.0.0.1", ":9")
		d.until("the port has no listener", func() error {
			at := forwarding.FindStringSubmatch(printed.String())
			if at == nil {
				return fmt.Errorf("%q", printed)
			}
			conn, err := net.Dial("tcp", at[1])
			if err == nil {
				_, _ = io.Copy(io.Discard, conn)
				conn.Close()
			}
			if !strings.Contains(printed.String(), "refused") {
				return fmt.Errorf("%q", printed)
			}
			return nil
		})
	})
}

func kubectlCopy(d desk) {
	d.sleeper("web", "")
	d.each(func(d desk) {
		dir := d.t.TempDir()
		from, back := filepath.Join(dir, "from"), filepath.Join(dir, "back")
		files := map[string]string{"small": "hello\n", "large": strings.Repeat("0123456789abcdef", 200_000), "below/empty": "", "below/a name": "spaces"}
		for name, text := range files {
			require.NoError(d.t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755))
			require.NoError(d.t, os.WriteFile(filepath.Join(from, name), []byte(text), 0o644))
		}
		there := "/tmp/" + strings.ToLower(filepath.Base(d.t.Name()))
		d.ok("cp", from, "web:"+there)
		assert.Equal(d.t, "hello\n", d.ok("exec", "web", "--", "cat", there+"/small"))
		d.ok("cp", "web:"+there, back)
		for name, text := range files {
			got, err := os.ReadFile(filepath.Join(back, name))
			require.NoError(d.t, err)
			assert.True(d.t, text == string(got), name)
		}
	})
}

func kubectlDebug(d desk) {
	d.sleeper("web", "")
	was := d.with("", "debug", "web", "--image="+lab.Busybox, "--container=look", "--target=web", "--attach=false", "--profile=general", "--", "sh", "-c", "echo looking; sleep 3600")
	require.Zero(d.t, was.code, "%+v", was)
	d.until("the ephemeral container runs", func() error {
		pod, err := d.pod("web")
		if err != nil {
			return err
		}
		for _, c := range pod.Status.EphemeralContainerStatuses {
			if c.Name == "look" && c.State.Running != nil {
				return nil
			}
		}
		return fmt.Errorf("%+v", pod.Status.EphemeralContainerStatuses)
	})
	d.each(func(d desk) {
		// It shares the processes of its target.
		assert.Contains(d.t, d.ok("exec", "web", "-c", "look", "--", "ps"), "sleep 3600")
	})
	// Typed input, which ends only after the response has arrived: the runtime
	// disconnects a client that has no more input.
	cmd := d.command("debug", "-i", "web", "--image="+lab.Busybox, "--container=typed", "--quiet", "--", "sh")
	in, err := cmd.StdinPipe()
	require.NoError(d.t, err)
	printed := new(output)
	cmd.Stdout, cmd.Stderr = printed, printed
	require.NoError(d.t, cmd.Start())
	_, err = io.WriteString(in, "echo typed $((6*7))\n")
	require.NoError(d.t, err)
	d.until("it answers", func() error {
		if !strings.Contains(printed.String(), "typed 42\n") {
			return fmt.Errorf("%q", printed)
		}
		return nil
	})
	_, err = io.WriteString(in, "exit 0\n")
	require.NoError(d.t, err)
	assert.NoError(d.t, cmd.Wait())
}

func kubectlDelete(d desk) {
	d.sleeper("polite", "echo ready")
	d.until("it would notice a TERM", func() error {
		if was := d.with("", "logs", "polite"); was.out != "ready\n" {
			return fmt.Errorf("%+v", was)
		}
		return nil
	})
	d.ok("run", "stubborn", "--image="+lab.Busybox, "--restart=Never", "--command", "--", "sh", "-c", "trap '' TERM; sleep 3600 & while :; do wait; done")
	d.ok("wait", "pod/stubborn", "--for=condition=Ready", "--timeout="+(2*patience).String())
	d.ok("delete", "pod", "polite", "--grace-period=1000", "--wait", "--timeout="+patience.String()) // it does not have to be killed
	d.ok("delete", "pod", "stubborn", "--grace-period=2", "--wait", "--timeout="+patience.String())
	assert.Contains(d.t, d.with("", "get", "pod", "stubborn").err, "NotFound")
	d.sleeper("gone", "")
	d.ok("delete", "pod", "gone", "--force", "--grace-period=0")
	d.until("the runtime has nothing of them", func() error {
		if left := d.running(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
}

func kubectlDrain(d desk) {
	d.ok("create", "deployment", "web", "--image="+lab.Busybox, "--replicas=2", "--", "sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait")
	d.ok("rollout", "status", "deployment/web", "--timeout="+(2*patience).String())
	d.ok("cordon", "node")
	assert.Regexp(d.t, `^node +Ready,SchedulingDisabled`, d.ok("get", "nodes", "node", "--no-headers"))
	d.ok("run", "late", "--image="+lab.Busybox, "--restart=Never", "--command", "--", "sleep", "3600")
	out := d.ok("drain", "node", "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--grace-period=2", "--timeout="+(2*patience).String(), "--pod-selector=app=web")
	assert.Contains(d.t, out, "drained")
	pods, err := d.api.CoreV1().Pods(d.name).List(d.t.Context(), metav1.ListOptions{})
	require.NoError(d.t, err)
	for _, p := range pods.Items {
		assert.Equal(d.t, v1.PodPending, p.Status.Phase, "%s", p.Name)
	}
	d.ok("uncordon", "node")
	d.ok("rollout", "status", "deployment/web", "--timeout="+(2*patience).String())
	d.untilPhase("late", v1.PodRunning)
}
