package kubelet

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The manifest of deploy/study runs on a node of this agent, and the results of its shares are those of
// one process, byte for byte.
func TestIntegrationAStudyIsAnIndexedJob(t *testing.T) {
	w := onCluster(t)
	kubectl := lab.NewKubectl(t, w.control.Kubeconfig)
	run := func(stdin string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := kubectl.Command(ctx, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	r := w.room(t, "study")
	binary := filepath.Join(t.TempDir(), "study")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "github.com/kubeparts/kubeparts/examples/study")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	documents := strings.Split(run("", "kustomize", "../../deploy/study"), "\n---\n")
	var job batchv1.Job
	for i, d := range documents {
		if !strings.Contains(d, "kind: Job\n") {
			continue
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(d), &job))
		onlyHere(t, w, &job)
		data, err := yaml.Marshal(job)
		require.NoError(t, err)
		documents[i] = string(data)
	}
	require.Equal(t, "study", job.Name)
	main := &job.Spec.Template.Spec.Containers[0]
	w.daemon.Import(studyImage(t, main.Image, binary))
	run(strings.Join(documents, "\n---\n"), "apply", "-n", r.name, "-f", "-")

	began := time.Now()
	deadline := began.Add(10 * time.Minute) // at most as many shares at once as the node has CPUs
	for {
		is := run("", "get", "-n", r.name, "job/study", "-o", `jsonpath={.status.completedIndexes} {.status.conditions[?(@.status=="True")].type}`)
		require.NotContains(t, is, "Fail")
		if strings.HasPrefix(is, "0-9 ") && strings.Contains(is, "Complete") {
			break
		}
		require.True(t, time.Now().Before(deadline), "completed shares: %s", is)
		time.Sleep(time.Second)
	}
	t.Logf("%d shares are complete after %v", *job.Spec.Completions, time.Since(began).Round(100*time.Millisecond))

	results := func(args ...string) map[string]string {
		t.Helper()
		dir := t.TempDir()
		out, err := exec.CommandContext(t.Context(), binary, append(args, "--out="+dir)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		files := map[string]string{}
		for _, name := range []string{"runs.csv", "summary.csv", "series.csv", "values.svg", "series.svg"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			files[name] = string(data)
		}
		return files
	}
	merged := results("--merge", "--configmaps=study", "--namespace="+r.name, "--kubeconfig="+w.control.Kubeconfig)
	var flags []string // those of the study, without shares
	for _, arg := range main.Args {
		if !strings.HasPrefix(arg, "--shares") && !strings.HasPrefix(arg, "--configmaps") {
			flags = append(flags, arg)
		}
	}
	assert.Equal(t, results(flags...), merged)
	assert.Equal(t, 1+2*50, bytes.Count([]byte(merged["runs.csv"]), []byte("\n")), "a line for each of two policies and 50 seeds")
}

// onlyHere changes what this machine does not have: the API server listens at a loopback address, and
// the network of pods does not lead there.
func onlyHere(t *testing.T, w *clusterWorld, job *batchv1.Job) {
	t.Helper()
	api, err := url.Parse(w.control.URL)
	require.NoError(t, err)
	spec := &job.Spec.Template.Spec
	spec.HostNetwork = true
	spec.Containers[0].Env = append(spec.Containers[0].Env,
		v1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: api.Hostname()}, v1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: api.Port()})
}

// studyImage has the program where the image of a release has it, with its user.
func studyImage(t *testing.T, ref, binary string) lab.Image {
	t.Helper()
	program, err := os.ReadFile(binary)
	require.NoError(t, err)
	return lab.Image{
		Ref: ref, Entrypoint: []string{"/study"}, User: "65532",
		Files: []lab.File{{Path: "tmp/", Mode: 0o1777}, {Path: "study", Mode: 0o755, Data: program}},
	}
}
