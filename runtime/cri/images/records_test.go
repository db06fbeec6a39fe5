package images_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

func fileName(of string) string { return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(of))) }

func put(t *testing.T, text string, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// files lists the files in the directory, as "pulled/<image> <content>".
func files(t *testing.T, dir string, names ...string) []string {
	t.Helper()
	var list []string
	for _, kind := range []string{"pulling", "pulled"} {
		entries, _ := os.ReadDir(filepath.Join(dir, kind))
		for _, e := range entries {
			name := e.Name()
			for _, of := range names {
				if name == fileName(of) {
					name = of
				}
			}
			data, err := os.ReadFile(filepath.Join(dir, kind, e.Name()))
			require.NoError(t, err)
			list = append(list, kind+"/"+name+" "+string(data))
		}
	}
	return list
}

// img-6: the files are the kubelet's.
func TestPullsAreRecorded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{may: map[string][]string{"reg:5000/img:1": {"ann", "bob", "tok"}}, takes: 2 * time.Second}
		creds := new(credentials)
		m := newManager(t, images.Config{Service: f, Credentials: creds, Dir: dir})
		pull := func(creds_ ...images.Credential) {
			creds.set("a", creds_...)
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "reg:5000/img:1", PullPolicy: v1.PullAlways})
			require.NoError(t, err)
		}
		look := func() []string { return files(t, dir, "reg:5000/img:1", "sha256:reg:5000/img:1") }
		assert.Empty(t, look(), "New creates no file")
		go func() {
			time.Sleep(time.Second)
			assert.Equal(t, []string{`pulling/reg:5000/img:1 {"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"reg:5000/img:1"}`}, look())
		}()
		pull(secret("a", "eve", "0"), secret("b", "bob", "2"))
		record := func(at int, creds string) []string {
			return []string{fmt.Sprintf(`pulled/reg:5000/img:1-ref {"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2000-01-01T00:00:%02dZ","imageRef":"sha256:reg:5000/img:1","credentialMapping":{"reg:5000/img":{%s}}}`, at, creds)}
		}
		lookRef := func() []string {
			list := files(t, dir, "reg:5000/img:1")
			for i := range list {
				list[i] = strings.Replace(list[i], fileName("sha256:reg:5000/img:1"), "reg:5000/img:1-ref", 1)
			}
			return list
		}
		b := `{"uid":"uid-b","namespace":"prod","name":"b","credentialHash":"2"}`
		assert.Equal(t, record(4, `"kubernetesSecrets":[`+b+`]`), lookRef(), "the credential that worked, and no intent")
		pull(secret("b", "bob", "2"))
		assert.Equal(t, record(6, `"kubernetesSecrets":[`+b+`]`), lookRef(), "again")
		pull(account("s", "tok"))
		s := `{"uid":"uid-s","namespace":"prod","name":"s"}`
		assert.Equal(t, record(8, `"kubernetesSecrets":[`+b+`],"kubernetesServiceAccounts":[`+s+`]`), lookRef())
		pull(nodeWide("ann"))
		assert.Equal(t, record(10, `"nodePodsAccessible":true`), lookRef(), "accessible to every pod")
		pull(secret("b", "bob", "2"))
		assert.Equal(t, record(12, `"nodePodsAccessible":true`), lookRef(), "still accessible to every pod")
	})
}

// A failed pull leaves nothing behind. After a pull with an unknown result, the image
// is given only to pods whose credentials are verified.
func TestRecordsAfterAPull(t *testing.T) {
	const img = "img:1"
	for name, tc := range map[string]struct {
		pull    func(*testing.T, *fakeService, *images.Manager)
		intent  bool
		pulled  bool // for the other pod
		restart bool
	}{
		"it failed": {pull: func(t *testing.T, f *fakeService, m *images.Manager) {
			f.may = nil
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: img})
			require.Equal(t, "ErrImagePull", why(t, err))
			f.has(img) // preloaded
		}},
		"the answer was lost": {intent: true, pulled: true, pull: func(t *testing.T, f *fakeService, m *images.Manager) {
			f.loses = true
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: img})
			require.EqualError(t, err, "rpc error: code = Unavailable desc = connection lost")
			f.loses = false
		}},
		"and the agent restarted": {intent: true, pulled: true, restart: true, pull: func(t *testing.T, f *fakeService, m *images.Manager) {
			f.loses = true
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: img})
			require.EqualError(t, err, "rpc error: code = Unavailable desc = connection lost")
			f.loses = false
		}},
		"it was canceled": {intent: true, pulled: true, pull: func(t *testing.T, f *fakeService, m *images.Manager) {
			f.takes = time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := m.Ensure(ctx, images.Request{Pod: podOf("a"), Image: img})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			synctest.Wait()
			f.takes = 0
			f.has(img) // the runtime had it already
		}},
		"it was canceled before it started": {pull: func(t *testing.T, f *fakeService, m *images.Manager) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := m.Ensure(ctx, images.Request{Pod: podOf("a"), Image: img, PullPolicy: v1.PullAlways})
			require.ErrorIs(t, err, context.Canceled)
			f.has(img)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeService{may: map[string][]string{img: {"", "ann"}}}
				cfg := images.Config{Service: f, Dir: dir}
				m := newManager(t, cfg)
				tc.pull(t, f, m)
				synctest.Wait()
				f.pulled()
				assert.Equal(t, tc.intent, len(files(t, dir)) == 1)
				if tc.restart {
					m = newManager(t, cfg)
				}
				f.may = map[string][]string{img: {""}}
				_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("b"), Image: img})
				require.NoError(t, err)
				assert.Equal(t, tc.pulled, len(f.pulled()) == 1)
				for _, file := range files(t, dir) {
					assert.True(t, strings.HasPrefix(file, "pulled/"), file)
				}
			})
		})
	}
}

// After a crash between intent and success, the image counts as pulled by the agent,
// under every name.
func TestAnIntentThatIsLeftOverIsSettled(t *testing.T) {
	dir := t.TempDir()
	file := put(t, `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1alpha1","image":"img:1"}`, dir, "pulling", fileName("img:1"))
	absent := put(t, `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"img:2"}`, dir, "pulling", fileName("img:2"))
	long := put(t, `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"img:3"}`, dir, "pulling", fileName("img:3"))
	require.NoError(t, os.Chtimes(long, time.Time{}, time.Now().Add(-100*365*24*time.Hour)))
	synctest.Test(t, func(t *testing.T) {
		f := new(fakeService)
		f.has("img:1", "other:1")
		f.local["alias:1"] = f.local["img:1"]
		m := newManager(t, images.Config{Service: f, Dir: dir})
		for image, want := range map[string]string{"alias:1": "ErrImageNeverPull", "img:1": "ErrImageNeverPull", "other:1": ""} {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: image, PullPolicy: v1.PullNever})
			assert.Equal(t, want, why(t, err), image)
		}
		assert.NoFileExists(t, file)
		assert.FileExists(t, filepath.Join(dir, "pulled", fileName("sha256:img:1")))
		assert.FileExists(t, absent, "the runtime may still be pulling it")
		assert.NoFileExists(t, long)
	})
}

func TestLostPullsAreSettledInOrder(t *testing.T) {
	dir := t.TempDir()
	want := []string{"other:1"}
	for name := 'a'; name <= 'j'; name++ {
		image := string(name) + ":1"
		put(t, `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"`+image+`"}`, dir, "pulling", fileName(image))
		want = append(want, image)
	}
	f := new(fakeService)
	f.has("other:1")
	m := newManager(t, images.Config{Service: f, Dir: dir})
	_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "other:1", PullPolicy: v1.PullNever})
	require.NoError(t, err)
	assert.Equal(t, want, f.looked)
}

func TestAFileThatCannotBeReadIsNamedAndFailsSafe(t *testing.T) {
	good := `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2026-09-26T06:36:38Z","imageRef":"sha256:img:1","credentialMapping":{"img":{"nodePodsAccessible":true}}}`
	for name, tc := range map[string]struct {
		content string
		ok      bool
	}{
		"the kubelet's":           {good, true},
		"of an older version":     {strings.Replace(good, "v1beta1", "v1alpha1", 1), true},
		"fields of a newer one":   {strings.Replace(good, `"imageRef"`, `"news":[1],"imageRef"`, 1), true},
		"empty":                   {"", false},
		"cut off":                 {good[:60], false},
		"of another kind":         {strings.Replace(good, "ImagePulledRecord", "Pod", 1), false},
		"of another group":        {strings.Replace(good, "kubelet.config.k8s.io", "example.com", 1), false},
		"of another image":        {strings.Replace(good, "sha256:img:1", "sha256:img:2", 1), false},
		"other content":           {`["a"]`, false},
		"a field of another type": {strings.Replace(good, "true", `"yes"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := put(t, tc.content, dir, "pulled", fileName("sha256:img:1"))
			intent := put(t, "{", dir, "pulling", fileName("x"))
			put(t, "", dir, "pulling", fileName("y")+".tmp")
			f := &fakeService{may: map[string][]string{"img:1": {""}}}
			f.has("img:1")
			var log bytes.Buffer
			m := newManager(t, images.Config{Service: f, Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1", PullPolicy: v1.PullNever})
			assert.Equal(t, tc.ok, err == nil)
			assert.Equal(t, !tc.ok, strings.Contains(log.String(), file))
			assert.Contains(t, log.String(), intent)
			assert.NotContains(t, log.String(), ".tmp")
			// A pull repairs the record.
			_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1"})
			require.NoError(t, err)
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.True(t, json.Valid(data))
			_, err = newManager(t, images.Config{Service: f, Dir: dir}).Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1", PullPolicy: v1.PullNever})
			require.NoError(t, err)
		})
	}
}

func TestAPullThatCannotBeRecordedIsNotMade(t *testing.T) {
	for policy, want := range map[images.VerifyPolicy]string{images.NeverVerify: "", images.NeverVerifyPreloadedImages: "ErrImagePull"} {
		dir := put(t, "a file in the way", t.TempDir(), "file")
		f := registry(1)
		m := newManager(t, images.Config{Service: f, Dir: dir, Verify: policy})
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1"})
		assert.Equal(t, want, why(t, err))
		assert.Equal(t, want == "", len(f.pulled()) == 1)
		if err != nil {
			assert.ErrorContains(t, err, dir)
		}
	}
}

func TestRecordsOfRemovedImagesArePruned(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := registry(3)
		m := newManager(t, images.Config{Service: f, Dir: dir})
		pull := func(image string) {
			_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: image})
			require.NoError(t, err)
		}
		pull("img:1")
		pull("img:2")
		time.Sleep(2500 * time.Millisecond)
		before := time.Now()
		time.Sleep(100 * time.Millisecond)
		pull("img:3") // after the images were listed
		put(t, "{", dir, "pulled", fileName("x"))
		require.NoError(t, m.Prune([]string{"sha256:img:1"}, before))
		assert.FileExists(t, filepath.Join(dir, "pulled", fileName("sha256:img:1")))
		assert.NoFileExists(t, filepath.Join(dir, "pulled", fileName("sha256:img:2")))
		assert.FileExists(t, filepath.Join(dir, "pulled", fileName("sha256:img:3")))
		// An image that was restored by another program is preloaded.
		f.pulled()
		pull("img:2")
		assert.Empty(t, f.pulled())
	})
	require.NoError(t, newManager(t, images.Config{Service: new(fakeService)}).Prune(nil, time.Now()))
	require.NoError(t, newManager(t, images.Config{Service: new(fakeService), Dir: dir + "/none"}).Prune(nil, time.Now()))
}

// The size of a record is bounded, however many secrets contain the same credential,
// even without pulls.
func TestARecordHasABound(t *testing.T) {
	dir := t.TempDir()
	f := &fakeService{may: map[string][]string{"img:1": {"ann"}}}
	creds := new(credentials)
	m := newManager(t, images.Config{Service: f, Credentials: creds, Dir: dir})
	for i := range 150 {
		creds.set("a", secret(fmt.Sprint("s", i), "ann", "1"))
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1"})
		require.NoError(t, err)
	}
	assert.Len(t, f.pulled(), 1)
	data, err := os.ReadFile(filepath.Join(dir, "pulled", fileName("sha256:img:1")))
	require.NoError(t, err)
	assert.Equal(t, 101, strings.Count(string(data), "credentialHash"))
}
