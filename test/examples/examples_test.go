// Package examples_test checks that the examples use exported packages only and stay small.
package examples_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxLines is the limit of an example, in lines of Go without tests; maxRecipe is that of a
// recipe, which consists of a test only.
const maxLines, maxRecipe = 250, 80

// maxOf are the limits of larger examples, with the reason.
var maxOf = map[string]int{
	"hollow":  300, // the program of deploy/hollow: adoption, ports and shards
	"kubelet": 560, // flags that only a process can have: lock file, version, ports, recorder
	"replay":  270, // differences, decisions, and a shorter recording with the same difference
	"study":   480, // the program of deploy/study: two studies, and three places for their parts
}

// withoutTests are the examples whose tests need internal packages, with the reason. They are
// copied without tests.
var withoutTests = map[string]string{
	"agent": "a test starts a real containerd with internal/lab",
}

// Each example is copied into a module of its own outside of the repository, where it must
// compile, tests included. go vet finds all that does not compile, without linking programs.
// Modules come from the module cache; there is no network.
func TestEachExampleCompilesOutsideOfTheRepository(t *testing.T) {
	sourcesChange()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join(root, "examples"))
	require.NoError(t, err)
	examples := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		examples++
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			program, tests, err := copyExample(filepath.Join(root, "examples", entry.Name()), dir, withoutTests[entry.Name()] == "")
			require.NoError(t, err)
			t.Logf("%d lines, and %d of tests", program, tests)
			assert.LessOrEqual(t, program, cmp.Or(maxOf[entry.Name()], maxLines), "lines of Go in examples/%s", entry.Name())
			if program == 0 {
				assert.LessOrEqual(t, tests, maxRecipe, "lines of Go in examples/%s", entry.Name())
			}
			writeModule(t, root, dir)
			run(t, dir, "vet", "./...")
		})
	}
	assert.Greater(t, examples, 5)
}

// Each complete program in README.md compiles in a module outside of the repository.
func TestTheProgramsOfTheReadmeCompile(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	programs := regexp.MustCompile("(?ms)^```go\\n(.*?)^```$").FindAllSubmatch(readme, -1)
	require.GreaterOrEqual(t, len(programs), 3)
	for i, program := range programs {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), program[1], 0o600))
			writeModule(t, root, dir)
			run(t, dir, "vet", ".")
		})
	}
}

// The agent of README.md runs a pod, a second after it has started.
func TestTheAgentOfTheReadmeRunsAPod(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process runtime needs Linux")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	program := regexp.MustCompile("(?ms)^```go\\n(package main.{0,400}?kubeparts/agent\".*?)^```$").FindSubmatch(readme)
	require.NotNil(t, program, "README.md has no program that imports package agent")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), program[1], 0o600))
	writeModule(t, root, dir)
	run(t, dir, "build", "-o", "edge", ".")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pods"), 0o700))
	const manifest = `{apiVersion: v1, kind: Pod, metadata: {name: good}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: main, image: host, command: [sleep, "3"], livenessProbe: {exec: {command: ["true"]}}}]}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pods", "good.yaml"), []byte(manifest), 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./edge")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // killed
	defer cancel()
	var lines []string
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if strings.Contains(scanner.Text(), "Running ready=1/1") {
			require.NoError(t, os.Remove(filepath.Join(dir, "pods", "good.yaml")))
		}
		if strings.Contains(scanner.Text(), "deleted") {
			return // no process is left
		}
	}
	t.Fatalf("it did not run the pod and delete it:\n%s", strings.Join(lines, "\n"))
}

// writeModule writes the module's files. It has the requirements of the module examples,
// so that the build cache has most packages; the released modules are those of the checkout.
func writeModule(t *testing.T, root, dir string) {
	t.Helper()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, "examples", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	const core = "github.com/kubeparts/kubeparts"
	run(t, dir, "mod", "edit", "-module", "example.com/copy", "-replace", core+"="+root, "-replace", core+"/kube="+filepath.Join(root, "kube"))
}

// sourcesChange reads the variable with which .ci/run has the go command run these tests again if a
// source changes: it does not notice changes in other modules.
func sourcesChange() { _ = os.Getenv("KUBEPARTS_SOURCES") }

// copyExample copies a directory, possibly without its tests, and returns the numbers of
// lines of Go of the program and of the copied tests.
func copyExample(from, to string, withTests bool) (program, tests int, err error) {
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		test := strings.HasSuffix(rel, "_test.go")
		if test && !withTests {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch lines := bytes.Count(content, []byte("\n")); {
		case test:
			tests += lines
		case strings.HasSuffix(rel, ".go"):
			program += lines
		}
		return os.WriteFile(filepath.Join(to, rel), content, 0o600)
	})
	return program, tests, err
}

// run runs the go command without network in dir. Without cgo it takes less time to compile, and with the
// flags of the environment, such as -trimpath, what has been compiled is used.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPROXY=off", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "go %v\n%s", args, out)
}
