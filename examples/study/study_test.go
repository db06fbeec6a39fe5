package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// parse returns the options of a command line.
func parse(t *testing.T, args ...string) (o options) {
	t.Helper()
	f := flag.NewFlagSet("study", flag.ContinueOnError)
	o.define(f)
	require.NoError(t, f.Parse(args))
	return o
}

// small is a study of 2 policies and 50 seeds that takes seconds.
func small(args ...string) []string {
	return append([]string{"--seeds=50", "--nodes=2", "--pods=20", "--for=4h"}, args...)
}

func try(t *testing.T, in io.Reader, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), parse(t, args...), in, &out)
	return out.String(), err
}

// hash returns the hash of all files of a directory and their names.
func hash(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	require.NoError(t, os.CopyFS(filepath.Join(t.TempDir(), "copy"), os.DirFS(dir))) // there is nothing but files
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, names, 5)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(name), len(text), text)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestTheNumberOfSharesMakesNoDifference(t *testing.T) {
	results := t.TempDir()
	summary, err := try(t, nil, small("--out", results)...)
	require.NoError(t, err)
	want := hash(t, results)
	for _, shares := range []int{1, 2, 10} {
		began, parts, results := time.Now(), t.TempDir(), t.TempDir()
		for i := range shares {
			_, err := try(t, nil, small("--parts", parts, fmt.Sprint("--shares=", shares), fmt.Sprint("--share=", i))...)
			require.NoError(t, err)
		}
		took := time.Since(began)
		merged, err := try(t, nil, "--merge", "--parts", parts, "--out", results)
		require.NoError(t, err)
		is := hash(t, results)
		t.Logf("%2d shares: %s, %v each", shares, is, (took / time.Duration(shares)).Round(time.Millisecond))
		assert.Equal(t, want, is, "%d shares", shares)
		assert.Equal(t, summary, merged)
	}
	rows := strings.Split(summary, "\n")
	assert.Contains(t, rows[2], "pods evicted,pack,")
	assert.NotContains(t, rows[2], ",50,0,0", "the policies differ")
}

func TestOtherPartsAreRefused(t *testing.T) {
	var parts strings.Builder
	tiny := []string{"--seeds=2", "--nodes=1", "--pods=2", "--for=1h", "--shares=4"}
	for _, i := range []string{"0", "1", "3"} {
		part, err := try(t, nil, append(tiny, "--share", i)...)
		require.NoError(t, err)
		parts.WriteString(part)
	}
	foreign, err := try(t, nil, append(tiny, "--pods=3", "--share=2")...)
	require.NoError(t, err)
	_, err = try(t, strings.NewReader(parts.String()), "--merge")
	assert.EqualError(t, err, "study: merge placement: part 2 of 4 is missing")
	_, err = try(t, strings.NewReader(parts.String()+foreign), "--merge")
	assert.ErrorContains(t, err, `part 2 of 4 is of another study than part 0 of 4: Settings "nodes=1 pods=3 for=1h0m0s", not "nodes=1 pods=2`)
	_, err = try(t, strings.NewReader(parts.String()+parts.String()), "--merge")
	assert.ErrorContains(t, err, "part 3 of 4 occurs more than once")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "part-7.json"), []byte("{}"), 0o600))
	_, err = try(t, nil, "--merge", "--parts", dir)
	assert.ErrorContains(t, err, "part-7.json")
}

func TestInvalidFlagsAreErrors(t *testing.T) {
	for flags, want := range map[string]string{
		"--study=weather":                        "--study=weather: want placement or backoff",
		"--seeds=0":                              "Spec.Seeds 0",
		"--shares=300":                           "300 shares of 100 runs",
		"--share=5 --shares=5":                   "share 5 is not from 0 to 4",
		"--nodes=0 --seeds=1":                    "seed 1: cluster: Config.Nodes is empty",
		"--merge --configmaps=s --kubeconfig=no": "no: no such file",
		"--share=0 --parts=no/where --seeds=1 --pods=1 --for=1h": "no/where",
	} {
		_, err := try(t, nil, strings.Fields(flags)...)
		assert.ErrorContains(t, err, want)
	}
	o := parse(t)
	assert.EqualError(t, o.completionIndex("x"), `JOB_COMPLETION_INDEX="x" is not an index`)
	require.NoError(t, o.completionIndex("4"))
	assert.Equal(t, 4, o.share)
	require.NoError(t, o.completionIndex("5"))
	assert.Equal(t, 4, o.share, "the flag has precedence")
}

func TestTheAgentIsStudied(t *testing.T) {
	out, err := try(t, nil, "--study=backoff", "--seeds=2")
	require.NoError(t, err)
	t.Log("\n" + out)
	assert.Contains(t, out, "invariants violated,kubelet,0,")
}

// The containers of the Job in deploy/study are run as processes, with an API server in memory.
func TestTheIndexedJobIsMerged(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "study.exe")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var job batchv1.Job
	decode(t, "job.yaml", &job)
	require.Equal(t, batchv1.IndexedCompletion, *job.Spec.CompletionMode)
	container := job.Spec.Template.Spec.Containers[0]
	require.Contains(t, container.Args, fmt.Sprint("--shares=", *job.Spec.Completions))

	api := new(apitest.Server)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", Namespace: "studies"}
	config.CurrentContext = "c"
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))

	tiny := small("--seeds=5")
	args := slices.Concat(container.Args, tiny, []string{"--kubeconfig", kubeconfig})
	for i := range *job.Spec.Completions {
		for range map[bool]int{true: 2, false: 1}[i == 3] { // a pod is started again
			c := exec.Command(program, args...)
			c.Env = append(os.Environ(), fmt.Sprint("JOB_COMPLETION_INDEX=", i))
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Empty(t, out)
		}
	}
	require.Len(t, api.List("configmaps"), int(*job.Spec.Completions))
	merged, err := try(t, nil, "--merge", "--configmaps=study", "--kubeconfig", kubeconfig)
	require.NoError(t, err)
	alone, err := try(t, nil, tiny...)
	require.NoError(t, err)
	assert.Equal(t, alone, merged)

	// The Role permits the calls of the pods.
	var role rbacv1.Role
	decode(t, "rbac.yaml", new(v1.ServiceAccount), &role)
	for _, c := range api.Calls("", "configmaps") {
		if c.Verb != "list" {
			assert.Contains(t, role.Rules[0].Verbs, c.Verb)
		}
	}
	assert.Equal(t, []string{"configmaps"}, role.Rules[0].Resources)
}

// decode decodes the documents of a manifest of deploy/study.
func decode(t *testing.T, name string, objects ...any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "study", name))
	require.NoError(t, err)
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for _, o := range objects {
		require.NoError(t, d.Decode(o))
	}
}
