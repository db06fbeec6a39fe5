package volume_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/configmap"
	"github.com/kubeparts/kubeparts/volume/downward"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/secret"
)

// asStress makes the test binary an agent of the stress test, on the directory that it
// names; asRound selects the pods that it runs.
const (
	asStress = "KUBEPARTS_TEST_AS_VOLUME_AGENT"
	asRound  = "KUBEPARTS_TEST_ROUND"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(asStress); root != "" {
		stressAgent(root, os.Getenv(asRound))
	}
	os.Exit(m.Run())
}

const stressPods = 200

// objects returns the ConfigMap and the Secret of every pod.
type objects struct{}

func (objects) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	return &v1.ConfigMap{Data: map[string]string{"color": "blue"}}, nil
}

func (objects) Secret(context.Context, string, string) (*v1.Secret, error) {
	return &v1.Secret{Data: map[string][]byte{"password": []byte("x")}}, nil
}

// stressPod has five volumes, two of them in memory.
func stressPod(i int, dir string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: "default", UID: types.UID(fmt.Sprintf("uid-%d", i))}}
	group, size := int64(1000+i), resource.MustParse("1Mi")
	p.Spec.SecurityContext = &v1.PodSecurityContext{FSGroup: &group}
	p.Spec.Volumes = []v1.Volume{
		{Name: "disk", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "memory", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: &size}}},
		{Name: "conf", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "c"}}}},
		{Name: "secret", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "s"}}},
		{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: dir}}},
	}
	c := v1.Container{Name: "c"}
	for _, v := range p.Spec.Volumes {
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	p.Spec.Containers = []v1.Container{c}
	return p
}

func realManager(root string, hooks volume.Hooks) (*volume.Manager, error) {
	mounter := mount.New("")
	empty, err := emptydir.New(emptydir.Config{Mounter: mounter})
	if err != nil {
		return nil, err
	}
	conf, err := configmap.New(configmap.Config{Objects: objects{}, Mounter: mounter})
	if err != nil {
		return nil, err
	}
	sec, err := secret.New(secret.Config{Objects: objects{}, Tmpfs: empty.Tmpfs()})
	if err != nil {
		return nil, err
	}
	down, err := downward.New(downward.Config{Tmpfs: empty.Tmpfs()})
	if err != nil {
		return nil, err
	}
	return volume.New(volume.Config{
		RootDir: root, Plugins: []volume.Plugin{empty, conf, sec, down, new(hostpath.Plugin)}, Mounter: mounter, StatsPeriod: -1, Hooks: hooks,
	})
}

// stressAgent mounts and unmounts pods until it is killed; in the last round it
// unmounts everything, and exits.
func stressAgent(root, round string) {
	check := func(err error) {
		if err != nil {
			fmt.Println("agent:", err)
			os.Exit(1)
		}
	}
	m, err := realManager(root, volume.Hooks{})
	check(err)
	ctx := context.Background()
	go func() { check(m.Run(ctx)) }()
	var seed uint64
	_, err = fmt.Sscan(round, &seed)
	check(err)
	random := rand.New(rand.NewPCG(seed, 0))
	order := random.Perm(stressPods)
	var wg sync.WaitGroup
	work := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range work {
				p := stressPod(i, filepath.Join(filepath.Dir(root), "host"))
				switch {
				case seed == 0:
				case (i+int(seed))%3 == 0:
					check(m.Unmount(ctx, p))
					fmt.Println("unmounted", i)
				default:
					got, err := m.Mount(ctx, p)
					check(err)
					_, err = m.SubPath(ctx, runtime.SubPath{PodUID: p.UID, Volume: "disk", VolumePath: got["disk"].Path, Container: "c", Path: "sub"})
					check(err)
					check(os.WriteFile(filepath.Join(got["disk"].Path, "data"), []byte("x"), 0o600))
					fmt.Println("mounted", i)
				}
			}
		})
	}
	for _, i := range order {
		work <- i
	}
	close(work)
	wg.Wait()
	if seed > 0 {
		fmt.Println("done")
		select {}
	}
	for {
		check(m.Retain(ctx, noPod))
		left, err := os.ReadDir(filepath.Join(root, "pods"))
		if err == nil && len(left) == 0 {
			os.Exit(0)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// 200 pods with 5 volumes each come and go, and the agent is killed in the middle
// of it, repeatedly: in the end nothing is mounted, no directory remains, and the files
// that were bound into a volume are complete.
func TestIntegrationPodsComeAndGoWhileTheAgentIsKilled(t *testing.T) {
	lab.Need(t, "linux", "root")
	base := t.TempDir()
	root := filepath.Join(base, "root")
	for _, dir := range []string{root, filepath.Join(base, "host"), filepath.Join(base, "user")} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	t.Cleanup(func() { _ = volume.RemoveTree(context.WithoutCancel(t.Context()), mount.New(""), root) }) // of a test that failed
	canaries := []string{filepath.Join(base, "host", "canary"), filepath.Join(base, "user", "deep", "canary")}
	for _, c := range canaries {
		write(t, c)
	}
	seed := seedrun.Seed(t)%(1<<40) + 1 // zero unmounts everything
	random := rand.New(rand.NewPCG(seed, 0))
	run := func(round uint64, kill int) (lines int) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asStress+"="+root, fmt.Sprintf("%s=%d", asRound, round))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		for s := bufio.NewScanner(out); s.Scan(); {
			require.NotContains(t, s.Text(), "agent:")
			if lines++; lines == kill || s.Text() == "done" {
				require.NoError(t, cmd.Process.Kill())
				break
			}
		}
		err = cmd.Wait()
		if kill == 0 {
			require.NoError(t, err)
		}
		return lines
	}
	total := 0
	for round := range 8 {
		total += run(seed+uint64(round), 10+random.IntN(150))
		// A directory of the host is bound into a volume.
		dirs, err := filepath.Glob(filepath.Join(root, "pods/*/volumes/kubernetes.io~empty-dir/disk"))
		require.NoError(t, err)
		if len(dirs) > 0 {
			bind(t, filepath.Join(base, "user"), filepath.Join(dirs[random.IntN(len(dirs))], "bound", "in"))
		}
	}
	run(seed+100, 0+stressPods) // all of them once
	run(0, 0)
	t.Logf("%d times a pod was mounted or unmounted before a kill", total)
	points, err := mount.New("").List()
	require.NoError(t, err)
	for _, p := range points {
		assert.False(t, strings.HasPrefix(p.Path, root), "%s is still mounted", p.Path)
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		assert.Contains(t, []string{root, filepath.Join(root, "pods")}, path, "is left")
		return nil
	}))
	for _, c := range canaries {
		assert.FileExists(t, c)
	}
}

func noPod(types.UID) bool { return false }

func bind(t testing.TB, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o755))
	require.NoError(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
}

func write(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
}
