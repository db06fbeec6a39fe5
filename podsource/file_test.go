package podsource_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
)

const webYAML = `apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: nginx
    image: nginx:1.29
`

func manifest(name string) string { return strings.Replace(webYAML, "name: web", "name: "+name, 1) }

func newFile(t *testing.T, path string) *podsource.File {
	t.Helper()
	f, err := podsource.NewFile(podsource.FileConfig{Path: path, NodeName: "n", Settle: -1})
	require.NoError(t, err)
	return f
}

func write(t *testing.T, path, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
}

func podNames(pods []*v1.Pod) []string {
	names := []string{}
	for _, pod := range pods {
		names = append(names, strings.TrimSuffix(pod.Name, "-n"))
	}
	return names
}

// read looks and returns the names of the pods.
func read(t *testing.T, f *podsource.File) []string {
	t.Helper()
	pods, err := f.Read()
	require.NoError(t, err)
	return podNames(pods)
}

// Each bad manifest is added to a directory with a good one, and with an
// earlier good version of itself; then it is mended.
func TestABadManifestIsReportedHarmsNoOtherAndKeepsItsLastGoodVersion(t *testing.T) { // src-22, src-25, lq-23, lq-24
	for name, tc := range map[string]struct {
		data string
		want []string
	}{
		"malformed YAML":         {"a: b: c", []string{"line 1"}},
		"several documents":      {webYAML + "---\n" + webYAML, []string{"has 2 documents; one pod per file"}},
		"unknown field":          {strings.Replace(webYAML, "image:", "imagee:", 1), []string{`unknown field "spec.containers[0].imagee"`}},
		"no containers":          {"apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\n", []string{"spec.containers: Required value"}},
		"invalid name":           {manifest("Bad_Name"), []string{"metadata.name", "Invalid value", `"Bad_Name"`}},
		"invalid container name": {strings.Replace(webYAML, "name: nginx", "name: Ng_inx", 1), []string{`spec.containers[0].name: Invalid value: "Ng_inx"`}},
		"another kind":           {"apiVersion: v1\nkind: Service\n", []string{`kind: Unsupported value: "Service"`}},
		"empty":                  {"", []string{"is empty"}},
		"binary":                 {"\x00\xff\xfe", []string{"is not UTF-8 text"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bad := filepath.Join(dir, "bad.yaml")
			write(t, filepath.Join(dir, "good.yaml"), manifest("good"))
			write(t, bad, tc.data)
			f := newFile(t, dir)

			assert.Equal(t, []string{"good"}, read(t, f))
			problems := f.Problems()
			require.Len(t, problems, 1)
			p := problems[0]
			assert.Equal(t, bad, p.Path)
			assert.ErrorContains(t, p.Err, "podsource: "+bad+": ")
			for _, want := range tc.want {
				assert.ErrorContains(t, p.Err, want)
			}
			assert.Zero(t, p.LastGood, "nothing of it is in force")
			assert.NotZero(t, p.Since)

			write(t, bad, manifest("bad"))
			assert.Equal(t, []string{"bad", "good"}, read(t, f), "mended, it appears")
			assert.Empty(t, f.Problems())

			write(t, bad, tc.data)
			assert.Equal(t, []string{"bad", "good"}, read(t, f), "lq-23: the last good version stays")
			problems = f.Problems()
			require.Len(t, problems, 1)
			assert.NotZero(t, problems[0].LastGood)
			since := problems[0].Since
			read(t, f)
			assert.Equal(t, since, f.Problems()[0].Since, "one and the same problem")

			require.NoError(t, os.Remove(bad))
			assert.Equal(t, []string{"good"}, read(t, f), "removed only when the file is gone")
			assert.Empty(t, f.Problems())
		})
	}
}

func TestOfTwoFilesWithOnePodTheFirstWins(t *testing.T) {
	withUID := func(name, uid string) string {
		return strings.Replace(manifest(name), "metadata:", "metadata:\n  uid: "+uid, 1)
	}
	for name, tc := range map[string]struct{ a, b, mended, want string }{
		"name": {manifest("web"), manifest("web"), manifest("db"), `pod "web-n_default" is also in `},
		"UID":  {withUID("web", "u"), withUID("db", "u"), withUID("db", "v"), `pod UID "u" is also in `},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
			write(t, a, tc.a)
			write(t, b, tc.b)
			f := newFile(t, dir)
			assert.Equal(t, []string{"web"}, read(t, f))
			require.Len(t, f.Problems(), 1)
			assert.Equal(t, b, f.Problems()[0].Path)
			assert.EqualError(t, f.Problems()[0].Err, "podsource: "+b+": "+tc.want+a+", which comes first")

			write(t, b, tc.mended)
			assert.Equal(t, []string{"web", "db"}, read(t, f))
			assert.Empty(t, f.Problems())

			write(t, b, tc.b)
			read(t, f)
			require.NoError(t, os.Remove(a))
			assert.Len(t, read(t, f), 1, "the second comes into force")
			assert.Empty(t, f.Problems())
		})
	}
}

func TestAHugeFileIsRefusedUnread(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge.yaml")
	write(t, huge, webYAML)
	require.NoError(t, os.Truncate(huge, 50<<20))
	write(t, filepath.Join(dir, "web.yaml"), webYAML)
	f := newFile(t, dir)
	allocated := testing.AllocsPerRun(1, func() { assert.Equal(t, []string{"web"}, read(t, f)) })
	t.Logf("%v allocations", allocated)
	require.Len(t, f.Problems(), 1)
	assert.EqualError(t, f.Problems()[0].Err, "podsource: "+huge+": has 52428800 bytes; the limit is 1572864")
}

func TestNamesWithADotAndDirectoriesAreNotLookedAt(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".hidden.yaml"), manifest("hidden"))
	write(t, filepath.Join(dir, "web.yaml"), webYAML)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	write(t, filepath.Join(dir, "sub", "deep.yaml"), manifest("deep"))
	f := newFile(t, dir)
	assert.Equal(t, []string{"web"}, read(t, f), "src-23")
	assert.Empty(t, f.Problems())
}

func TestLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("no symbolic links: ", err)
		}
	}
	target := filepath.Join(elsewhere, "target.yaml")
	write(t, target, webYAML)
	link(target, "web.yaml")
	link(elsewhere, "dir") // as with directories: not looked into
	link("loop2", "loop1")
	link("loop1", "loop2")
	link("nowhere", "dangling")
	f := newFile(t, dir)
	assert.Equal(t, []string{"web"}, read(t, f))
	var paths []string
	for _, p := range f.Problems() {
		paths = append(paths, filepath.Base(p.Path))
		assert.ErrorContains(t, p.Err, p.Path)
	}
	assert.Equal(t, []string{"dangling", "loop1", "loop2"}, paths)

	write(t, target, manifest("db"))
	assert.Equal(t, []string{"db"}, read(t, f), "the target counts")

	require.NoError(t, os.Remove(target))
	assert.Equal(t, []string{"db"}, read(t, f), "the link is still there, and cannot be read")
	require.NoError(t, os.Remove(filepath.Join(dir, "web.yaml")))
	assert.Empty(t, read(t, f))
}

func TestASingleManifest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.yaml")
	f := newFile(t, path)
	assert.Empty(t, read(t, f), "src-23: a missing path is an empty set")
	require.Len(t, f.Problems(), 1)
	assert.EqualError(t, f.Problems()[0].Err, "podsource: "+path+": does not exist")

	write(t, path, "kind: x")
	_, err := f.Read()
	assert.ErrorContains(t, err, "podsource: "+path+": apiVersion: Required value", "src-26: nothing is sent")
	write(t, path, webYAML)
	assert.Equal(t, []string{"web"}, read(t, f))
	write(t, path, "kind: x")
	assert.Equal(t, []string{"web"}, read(t, f), "src-26: the old pod stays")
	require.Len(t, f.Problems(), 1)
	require.NoError(t, os.Remove(path))
	assert.Empty(t, read(t, f))
}

func TestAFileThatIsBeingWrittenIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pod.yaml")
	write(t, path, webYAML)
	f, err := podsource.NewFile(podsource.FileConfig{Path: dir, NodeName: "n", Settle: time.Hour})
	require.NoError(t, err)
	_, err = f.Read()
	assert.EqualError(t, err, "podsource: "+path+": is being written to", "half a first set is none")

	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	assert.Equal(t, []string{"web"}, read(t, f))
	write(t, path, manifest("db"))
	assert.Equal(t, []string{"web"}, read(t, f), "not yet")
	require.NoError(t, os.Chtimes(path, old, old))
	assert.Equal(t, []string{"db"}, read(t, f))
}

func TestNewFileRefusesABadConfig(t *testing.T) {
	for want, cfg := range map[string]podsource.FileConfig{
		"podsource: FileConfig.Path is empty":                                          {NodeName: "n"},
		"podsource: FileConfig.NodeName is empty":                                      {Path: "x"},
		"podsource: FileConfig.NodeName: Invalid value: \"a_b\": a lowercase RFC 1123": {Path: "x", NodeName: "a_b"},
		"podsource: FileConfig.Period is -1s":                                          {Path: "x", NodeName: "n", Period: -time.Second},
	} {
		_, err := podsource.NewFile(cfg)
		assert.ErrorContains(t, err, want)
	}
}

// sets collects what a source delivers.
type sets struct {
	mu   sync.Mutex
	last []string
	n    int
	news chan struct{}
}

func (s *sets) set(pods []*v1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = podNames(pods)
	s.n++
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// names returns the pods of the last set, and count how many sets there were, when
// all has come to rest: in a bubble.
func (s *sets) names() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *sets) count() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// await waits until the last set has these pods.
func (s *sets) await(t *testing.T, names ...string) {
	t.Helper()
	limit := time.After(90 * time.Second)
	for {
		s.mu.Lock()
		last, n := s.last, s.n
		s.mu.Unlock()
		if n > 0 && strings.Join(last, " ") == strings.Join(names, " ") {
			return
		}
		select {
		case <-s.news:
		case <-limit:
			t.Fatalf("got %q after %d sets; want %q", last, n, names)
		}
	}
}

// run runs a source until the test ends.
func run(t *testing.T, source podsource.PodSource) *sets {
	s := &sets{news: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, s.set) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	return s
}

// Once by notifications alone and once by looking alone: each must do.
func TestRunFollowsTheDirectory(t *testing.T) { // src-24, src-27
	for name, cfg := range map[string]podsource.FileConfig{
		"notified": {Period: time.Hour, Settle: 10 * time.Millisecond},
		"looking":  {Period: 5 * time.Millisecond, Settle: -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "manifests")
			cfg.Path, cfg.NodeName = dir, "n"
			f, err := podsource.NewFile(cfg)
			require.NoError(t, err)
			s := run(t, f)
			s.await(t) // a missing directory is synced and empty

			require.NoError(t, os.Mkdir(dir, 0o700))
			web := filepath.Join(dir, "web.yaml")
			write(t, web, webYAML)
			s.await(t, "web")
			write(t, filepath.Join(dir, "db.yaml"), manifest("db"))
			s.await(t, "db", "web")
			write(t, web, manifest("web2"))
			s.await(t, "db", "web2")
			write(t, filepath.Join(dir, ".tmp"), manifest("renamed"))
			require.NoError(t, os.Rename(filepath.Join(dir, ".tmp"), web))
			s.await(t, "db", "renamed")
			require.NoError(t, os.Remove(web))
			s.await(t, "db")

			require.NoError(t, os.RemoveAll(dir))
			s.await(t) // it vanishes
			require.NoError(t, os.Mkdir(dir, 0o700))
			write(t, web, manifest("back"))
			s.await(t, "back") // and returns

			// Another directory takes its place.
			other := dir + ".new"
			require.NoError(t, os.Mkdir(other, 0o700))
			write(t, filepath.Join(other, "x.yaml"), manifest("x"))
			require.NoError(t, os.Rename(dir, dir+".old"))
			require.NoError(t, os.Rename(other, dir))
			s.await(t, "x")
			write(t, filepath.Join(dir, "z.yaml"), manifest("z"))
			s.await(t, "x", "z")
		})
	}
}

func TestRunFollowsAFileAmongOthers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pod.yaml")
	f, err := podsource.NewFile(podsource.FileConfig{Path: path, NodeName: "n", Period: time.Hour, Settle: 10 * time.Millisecond})
	require.NoError(t, err)
	s := run(t, f)
	s.await(t)
	write(t, filepath.Join(dir, "other.yaml"), manifest("other"))
	write(t, path, webYAML)
	s.await(t, "web")
	require.NoError(t, os.Remove(path))
	s.await(t)
}

func TestHooksReportProblemsAndTheirEnd(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pod.yaml")
	write(t, path, "a: 1")
	var reported []string
	f, err := podsource.NewFile(podsource.FileConfig{Path: dir, NodeName: "n", Settle: -1, Hooks: podsource.ManifestHooks{
		Problem:  func(p podsource.Problem) { reported = append(reported, "problem "+filepath.Base(p.Path)) },
		Resolved: func(path string) { reported = append(reported, "mended "+filepath.Base(path)) },
	}})
	require.NoError(t, err)
	read(t, f)
	read(t, f)
	assert.Equal(t, []string{"problem pod.yaml"}, reported, "once")
	write(t, path, "b: 1\nkind: Pod")
	read(t, f)
	write(t, path, webYAML)
	read(t, f)
	assert.Equal(t, []string{"problem pod.yaml", "problem pod.yaml", "mended pod.yaml"}, reported)
}
