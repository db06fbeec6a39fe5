//go:build unix

package kubelet

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// sleeper is a pod that runs until it is terminated.
func sleeper(name string) string {
	return `apiVersion: v1
kind: Pod
metadata: {name: ` + name + `}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox
    command: [sleep, inf]
`
}

// A mistake is a manifest that can't be used.
type mistake struct {
	file string // default: the name with .yaml

	// put writes it; nil: text is written.
	put  func(t *testing.T, path string)
	text string

	// says is the expected message, after the path.
	wantErr string
}

var mistakes = map[string]mistake{
	"malformed": {text: "apiVersion: v1\nkind: Pod\n\tmetadata: {}\n",
		wantErr: "yaml: line 3: found a tab character that violates indentation"},
	"json": {file: "json.json", text: "{\"apiVersion\": \"v1\",\n\"kind\": \"Pod\"",
		wantErr: "json: line 2: unexpected end"},
	"documents": {text: sleeper("one") + "---\n" + sleeper("two"),
		wantErr: "has 2 documents; one pod per file"},
	"unknown": {text: sleeper("unknown") + "  restartPolice: Always\n",
		wantErr: `unknown field "spec.restartPolice"`},
	"repeated": {text: sleeper("repeated") + "spec: {}\n",
		wantErr: `yaml: unmarshal errors: line 10: key "spec" already set in map`},
	"zz-same": {text: sleeper("good"), // sorts behind good.yaml
		wantErr: `pod "good-node_default" is also in `},
	"huge": {put: func(t *testing.T, path string) {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, os.Truncate(path, 50<<20))
	}, wantErr: "has 52428800 bytes; the limit is 1572864"},
	"circle": {put: func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) },
		wantErr: "too many levels of symbolic links"},
	"dangling": {put: func(t *testing.T, path string) { require.NoError(t, os.Symlink("nothing", path)) },
		wantErr: "dangling symbolic link: no such file or directory"},
	"fifo": {put: func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o644)) },
		wantErr: "is a named pipe, not a regular file"},
	"unreadable": {put: func(t *testing.T, path string) {
		require.NoError(t, os.WriteFile(path, []byte(sleeper("unreadable")), 0))
	}, wantErr: "permission denied"},
	"empty": {text: "# nothing yet\n---\n",
		wantErr: "is empty; one pod per file"},
	"binary": {text: "\x7fELF\x02\x01\xff\xfe",
		wantErr: "is not UTF-8 text"},
	"prose": {file: "prose.txt", text: "see the other directory\n",
		wantErr: `is no Pod but "see the other directory"`},
	"kind": {text: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kind}\n",
		wantErr: `apiVersion: Unsupported value: "apps/v1": supported values: "v1"; kind: Unsupported value: "Deployment": supported values: "Pod"`},
	"hollow": {text: "apiVersion: v1\nkind: Pod\nmetadata: {name: hollow}\nspec: {}\n",
		wantErr: "spec.containers: Required value: a pod has at least one container"},
	"nameless": {text: strings.Replace(sleeper("x"), "name: x", "labels: {app: x}", 1),
		wantErr: "metadata.name: Required value: name is needed for the pod"},
	"name": {text: sleeper("Upper_Case"),
		wantErr: `metadata.name: Invalid value: "Upper_Case": a lowercase RFC 1123 subdomain must`},
	"container": {text: strings.Replace(sleeper("container"), "name: main", "name: the main one", 1),
		wantErr: `spec.containers[0].name: Invalid value: "the main one": a lowercase RFC 1123 label must`},
	"type": {text: strings.Replace(sleeper("type"), "Seconds: 1", "Seconds: soon", 1),
		wantErr: `spec.terminationGracePeriodSeconds: Invalid value: "soon": `},
	"quantity": {text: sleeper("quantity") + "    resources: {limits: {memory: lots}}\n",
		wantErr: `spec.containers[0].resources.limits.memory: Invalid value: "lots": `},
}

func (m mistake) path(a *agent, name string) string {
	if m.file == "" {
		m.file = name + ".yaml"
	}
	return filepath.Join(a.manifests, m.file)
}

// firstID identifies one run of the pod's container.
func firstID(pod v1.Pod) string {
	if len(pod.Status.ContainerStatuses) != 1 {
		return ""
	}
	c := pod.Status.ContainerStatuses[0]
	return fmt.Sprint(c.ContainerID, " restarts ", c.RestartCount, " running ", c.State.Running != nil)
}

func running(pod v1.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Running != nil
}

func TestAnInvalidManifestIsReportedAndAffectsNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	mistakes := maps.Clone(mistakes)
	if os.Getuid() == 0 {
		delete(mistakes, "unreadable") // root reads anything
	}
	a := newAgent(t, "process")
	a.write("good.yaml", sleeper("good"))
	a.start()
	a.eventually("the good pod runs", func() bool { return running(a.pods()["good"]) })
	good := firstID(a.pods()["good"])
	unharmed := func() {
		t.Helper()
		require.Equal(t, good, firstID(a.pods()["good"]))
	}

	for name, m := range mistakes {
		if m.put != nil {
			m.put(t, m.path(a, name))
		} else {
			a.write(filepath.Base(m.path(a, name)), m.text)
		}
	}
	names := slices.Sorted(maps.Keys(mistakes))
	lines := func(path string) (found []string) {
		for line := range strings.Lines(a.out.String()) {
			if strings.Contains(line, path+":") {
				found = append(found, line)
			}
		}
		return found
	}
	for _, name := range names {
		path := mistakes[name].path(a, name)
		a.eventually("a line on "+name, func() bool { return len(lines(path)) > 0 })
	}
	ok, health := a.healthz()
	assert.False(t, ok)
	for _, name := range names {
		m := mistakes[name]
		path := m.path(a, name)
		logged := lines(path)
		assert.Len(t, logged, 1, "%s: one message: %s", name, logged)
		assert.Contains(t, logged[0], "podsource: "+path+": "+m.wantErr)
		assert.Contains(t, logged[0], "; not used\n")
		assert.Contains(t, health, path+": "+m.wantErr)
	}
	assert.Contains(t, health, "[-] manifests: podsource: ")
	assert.Len(t, a.pods(), 1)
	unharmed()

	for _, name := range names {
		path := mistakes[name].path(a, name)
		require.NoError(t, os.Remove(path))
		a.write(filepath.Base(path), sleeper("mended-"+name))
	}
	for _, name := range names {
		a.eventually("mended-"+name+" runs", func() bool { return running(a.pods()["mended-"+name]) })
		assert.Contains(t, a.out.String(), mistakes[name].path(a, name)+" is valid again\n")
	}
	ok, health = a.healthz()
	assert.True(t, ok, health)
	unharmed()

	// A good manifest that is spoilt stays in force.
	spoilt := firstID(a.pods()["mended-kind"])
	a.write("kind.yaml", mistakes["kind"].text)
	a.eventually("a line on the spoilt one", func() bool { return strings.Contains(a.out.String(), "; the last valid version remains\n") })
	ok, _ = a.healthz()
	assert.False(t, ok)
	assert.Equal(t, spoilt, firstID(a.pods()["mended-kind"]))
	a.write("kind.yaml", sleeper("mended-kind"))
	a.eventually("health is back", func() bool { ok, _ := a.healthz(); return ok })
	assert.Equal(t, spoilt, firstID(a.pods()["mended-kind"]), "the same manifest again is the same pod")
	unharmed()
}

func TestAPodThatCannotStartReportsTheCauseAndAffectsNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	a := newAgent(t, "process")
	a.write("good.yaml", sleeper("good"))
	a.write("silent.yaml", strings.Replace(sleeper("silent"), "    command: [sleep, inf]\n", "", 1))
	a.write("absent.yaml", strings.Replace(sleeper("absent"), "sleep, inf", "/no/such/program", 1))
	a.start()
	a.eventually("the good pod runs", func() bool { return running(a.pods()["good"]) })
	good := firstID(a.pods()["good"])
	for name, want := range map[string]string{
		"silent": "set the container's command",
		"absent": `command "/no/such/program": stat /no/such/program: no such file or directory`,
	} {
		a.eventually("a reason for "+name, func() bool {
			statuses := a.pods()[name].Status.ContainerStatuses
			return len(statuses) == 1 && statuses[0].State.Waiting != nil && strings.Contains(statuses[0].State.Waiting.Message, want)
		})
		assert.Equal(t, "CreateContainerError", a.pods()[name].Status.ContainerStatuses[0].State.Waiting.Reason)
		logged := 0
		for line := range strings.Lines(a.out.String()) {
			if strings.Contains(line, " "+name+"-node ") && strings.Contains(line, want) {
				logged++
			}
		}
		assert.Equal(t, 1, logged, name)
	}
	ok, health := a.healthz()
	assert.True(t, ok, "the manifests are fine: %s", health)
	for _, name := range []string{"silent", "absent"} {
		a.write(name+".yaml", sleeper(name))
	}
	a.eventually("the corrected pods run", func() bool { return running(a.pods()["silent"]) && running(a.pods()["absent"]) })
	assert.Equal(t, good, firstID(a.pods()["good"]))
}

func TestTheManifestDirectoryMayDisappearAndReturn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	a := newAgent(t, "process")
	require.NoError(t, os.Remove(a.manifests)) // it is created later
	a.start()
	for range 2 {
		a.eventually("healthz reports the missing directory", func() bool {
			_, health := a.healthz()
			return strings.Contains(health, "[-] manifests: podsource: "+a.manifests+": does not exist\n")
		})
		a.eventually("its pods are gone", func() bool { return len(a.pods()) == 0 })
		require.NoError(t, os.Mkdir(a.manifests, 0o755))
		a.write("good.yaml", sleeper("good"))
		a.eventually("the pod runs", func() bool { return running(a.pods()["good"]) })
		ok, health := a.healthz()
		assert.True(t, ok, health)
		require.NoError(t, os.RemoveAll(a.manifests))
	}
	assert.Equal(t, 2, strings.Count(a.out.String(), a.manifests+": does not exist; not used\n")+
		strings.Count(a.out.String(), a.manifests+": does not exist; the last valid version remains\n"), "once each time")
}

// try runs an agent that is expected to exit, and returns the result.
func try(t *testing.T, args ...string) (code int, stdout, stderr string, took time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	begun := time.Now()
	require.NoError(t, cmd.Start())
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // the exit code is checked below
	return cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(begun)
}

func TestHelpListsEveryFlag(t *testing.T) {
	if testing.Short() {
		t.Skip("starts agents")
	}
	code, out, errs, _ := try(t, "--help")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	for _, flag := range []string{"container-runtime-endpoint", "pod-manifest-path", "root-dir", "pod-logs-dir", "hostname-override", "listen", "stop-pods", "v"} {
		assert.Regexp(t, `\n  (-v,|   ) --`+flag+`\b`, out)
	}
	assert.Contains(t, out, "kubelet --pod-manifest-path=DIR")
}

func TestAStartErrorNamesTheRemedy(t *testing.T) {
	if testing.Short() {
		t.Skip("starts agents")
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	running := newAgent(t, "process")
	running.start()

	on := func(root string, args ...string) []string {
		return append([]string{"--pod-manifest-path=" + dir, "--root-dir=" + root, "--container-runtime-endpoint=process", "--listen=127.0.0.1:0"}, args...)
	}
	for name, tc := range map[string]struct {
		args    []string
		wantErr []string
	}{
		"no pods":         {nil, []string{"no source of pods: set --pod-manifest-path, --manifest-url or --kubeconfig; see --help"}},
		"unknown flag":    {[]string{"--manifest=x"}, []string{"-manifest", "see --help"}},
		"an argument":     {[]string{"--pod-manifest-path=" + dir, "web.yaml"}, []string{`unexpected argument "web.yaml"; see --help`}},
		"unknown runtime": {on(dir, "--container-runtime-endpoint=docker"), []string{`containerRuntimeEndpoint is "docker": want a socket such as unix://`}},
		"missing socket": {on(dir, "--container-runtime-endpoint=unix://"+dir+"/sock"),
			[]string{"connect to the runtime at unix://" + dir + "/sock", "no such file or directory", "is a CRI runtime listening there, and may this user access its socket?"}},
		"occupied address": {on(dir, "--listen="+busy.Addr().String()),
			[]string{"choose another, or stop the process that uses it", busy.Addr().String()}},
		"listen everywhere by mistake": {on(dir, "--listen=:10258"), []string{"--listen: ", "has no host"}},
		"root is a file":               {on(file), []string{"claim: create the root directory: mkdir " + file, "not a directory"}},
		"root in use": {on(filepath.Join(running.dir, "root")),
			[]string{"claim: root directory " + filepath.Join(running.dir, "root"), "in use", fmt.Sprint(running.cmd.Process.Pid)}},
		"node name":                  {on(dir, "--hostname-override=my node"), []string{`Invalid value: "my node"`}},
		"stopped pods of a cluster":  {on(dir, "--kubeconfig=x", "--stop-pods"), []string{"--stop-pods: the API server terminates the pods of a cluster"}},
		"remembered pods of none":    {on(dir, "--remember-pods"), []string{"CheckpointPods requires a Kubeconfig"}},
		"two clusters":               {on(dir, "--kubeconfig=x", "--in-cluster"), []string{"InCluster excludes a kubeconfig"}},
		"no kubeconfig":              {on(dir, "--kubeconfig="+dir+"/none", "--port=-1", "--healthz-port=-1"), []string{dir + "/none", "no such file"}},
		"unknown shutdown trigger":   {on(dir, "--shutdown-on=sun"), []string{"--shutdown-on=sun: want sigterm, or http"}},
		"shutdown not on loopback":   {on(dir, "--shutdown-on=http", "--listen=0.0.0.0:1", "--shutdown-grace-period=10s"), []string{"--shutdown-on=http: want", "loopback"}},
		"shutdown without a page":    {on(dir, "--shutdown-on=http", "--listen=", "--shutdown-grace-period=10s"), []string{"--shutdown-on=http: want"}},
		"shutdown without a time":    {on(dir, "--shutdown-on=sigterm"), []string{"shutdownGracePeriod"}},
		"too short a shutdown":       {on(dir, "--shutdown-grace-period=30ms"), []string{"invalid configuration: shutdownGracePeriod {30ms} must be either zero or otherwise >= 1 sec"}},
		"reserved CPUs of processes": {on(dir, "--cpu-manager-policy=static"), []string{"plain processes cannot have exclusive CPUs"}},
		"too much reserved":          {on(dir, "--kube-reserved=memory=1024Ti"), []string{`Resource "memory" has a reservation of 1Pi`}},
		"no score":                   {on(dir, "--oom-score-adj=-1001"), []string{"oomScoreAdj (--oom-score-adj) -1001 must be between -1000 and 1000, inclusive"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs, took := try(t, tc.args...)
			assert.Equal(t, 1, code)
			assert.Empty(t, out)
			assert.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
			assert.True(t, strings.HasPrefix(errs, "kubelet: "), errs)
			for _, wantErr := range tc.wantErr {
				assert.Contains(t, errs, wantErr)
			}
			assert.Less(t, took, time.Minute)
		})
	}
	ok, health := running.healthz()
	assert.True(t, ok, "the running kubelet is not disturbed: %s", health)
}

func TestPodsStopConcurrently(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	const pods = 8 // each needs a kill, after the grace
	const grace = 5 * time.Second
	a := newAgent(t, "process")
	for i := range pods {
		a.write(fmt.Sprintf("deaf%d.yaml", i), strings.NewReplacer(
			"[sleep, inf]", `[sh, -c, "trap '' TERM; while true; do sleep 1; done"]`,
			"GracePeriodSeconds: 1", fmt.Sprint("GracePeriodSeconds: ", grace.Seconds())).Replace(sleeper(fmt.Sprintf("deaf%d", i))))
	}
	a.start()
	a.eventually("all run", func() bool {
		n := 0
		for _, pod := range a.pods() {
			if running(pod) {
				n++
			}
		}
		return n == pods
	})
	begun := time.Now()
	require.NoError(t, a.interrupt())
	assert.Less(t, time.Since(begun), pods*grace)
	assert.Contains(t, a.out.String(), "stopping the pods")
	left, err := listProcesses(filepath.Join(a.dir, "root", "process"))
	require.NoError(t, err)
	for _, c := range left.containers {
		assert.False(t, c.running, "%s runs", c)
	}
}
