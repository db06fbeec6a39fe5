package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume/csi/csitest"
)

// looksAtVolumes is a script that prints the content and modes of a container's
// volumes, line by line; then, repeatedly, the values that may change.
const looksAtVolumes = `
say() { echo "$1: $2"; }
say disk "$(stat -c '%a' /disk) $(cat /disk/by-init)"
say disk-group "$(stat -c '%g' /disk)"
say memory "$(stat -f -c %T /memory) $(df -k /memory | tail -1 | awk '{print $2}')"
say cm "$(cat /cm/greeting) $(stat -L -c '%a' /cm/greeting) $(cat /cm/sub/dir/file)"
say cm-links "$(readlink /cm/greeting) $(readlink /cm/..data | cut -c1-4)"
say secret "$(cat /secret/password) $(stat -L -c '%a %g' /secret/password) $(stat -f -c %T /secret)"
say downward "$(cat /downward/labels) $(cat /downward/memory)"
say projected "$(cat /projected/greeting) $(cat /projected/password) $(cat /projected/name)"
say host "$(cat /host/canary)"
say part "$(cat /part)"
say env "$GREETING $PASSWORD"
echo x >/cm/x 2>/dev/null && say read-only no || say read-only yes
echo x >/ro/x 2>/dev/null && say mount-read-only no || say mount-read-only yes
echo written >/csi/by-the-pod; echo written >/host/by-the-pod
say ready yes
trap 'exit 0' TERM
while :; do say now "$(cat /cm/greeting) $(cat /secret/password) $(cat /projected/greeting) $(cat /part)"; say csi "$(cat /csi/hello)"; sleep 0.3; done
`

// volumesPod has a volume of each kind under test.
func volumesPod(host string) string {
	mounts := "volumeMounts: [{name: disk, mountPath: /disk}, {name: memory, mountPath: /memory}, {name: cm, mountPath: /cm}, " +
		"{name: secret, mountPath: /secret}, {name: downward, mountPath: /downward}, {name: projected, mountPath: /projected}, " +
		"{name: host, mountPath: /host}, {name: cm, mountPath: /part, subPath: greeting}, {name: csi, mountPath: /csi}, " +
		"{name: disk, mountPath: /ro, readOnly: true}]"
	env := "{name: GREETING, valueFrom: {configMapKeyRef: {name: web, key: greeting}}}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: web, key: password}}}"
	main := container("main", looksAtVolumes, mounts, "resources: {limits: {memory: 64Mi}}")
	main = strings.Replace(main, "env: [", "env: ["+env+", ", 1)
	return manifest("name: volumes, namespace: shop, labels: {app: web}",
		"securityContext: {fsGroup: 4321}",
		inits(container("first", "echo hello >/disk/by-init", "volumeMounts: [{name: disk, mountPath: /disk}]")),
		containers(main),
		"volumes:",
		"- {name: disk, emptyDir: {}}",
		"- {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}",
		"- {name: cm, configMap: {name: web, defaultMode: 0640, items: [{key: greeting, path: greeting}, {key: greeting, path: sub/dir/file}]}}",
		"- {name: secret, secret: {secretName: web, defaultMode: 0400}}",
		"- {name: downward, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: memory, resourceFieldRef: {containerName: main, resource: limits.memory, divisor: 1Mi}}]}}",
		"- {name: projected, projected: {sources: [{configMap: {name: web}}, {secret: {name: web}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}}",
		"- {name: host, hostPath: {path: "+host+", type: Directory}}",
		"- {name: csi, csi: {driver: test.csi.example.com, volumeAttributes: {size: 1Gi}}}",
	)
}

// Each kind of volume in a real container, seen from inside: contents, modes, owners,
// links, updates, read-only mounts, a CSI driver over its socket; after the pod is
// removed only files that did not belong to it are left.
func TestIntegrationVolumesOnContainerd(t *testing.T) {
	t.Parallel()
	w := onContainerd(t)
	objects, host := filepath.Join(w.dir, "objects"), filepath.Join(w.dir, "host")
	put := func(content string, path ...string) {
		t.Helper()
		name := filepath.Join(append([]string{objects}, path...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name+".tmp", []byte(content), 0o600))
		require.NoError(t, os.Rename(name+".tmp", name))
	}
	configMap := func(greeting string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {greeting: " + greeting + "}\n"
	}
	secret := func(password string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: shop}\nstringData: {password: " + password + "}\n"
	}
	put(configMap("hello"), "web.yaml")
	require.NoError(t, os.MkdirAll(host, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(host, "canary"), []byte("alive"), 0o644))

	root := filepath.Join(w.dir, "root")
	driver := &csitest.Driver{Name: "test.csi.example.com", Dir: filepath.Join(w.dir, "csi"), Mounter: mount.New("")}
	drives := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, driver.Run(ctx, root)) })
		return func() { cancel(); wg.Wait() }
	}
	stop := drives()
	t.Cleanup(func() { stop() })

	w.start("--objects=" + objects)
	isShared := regexp.MustCompile(regexp.QuoteMeta(root) + " [^ ]+ (.* )?shared:")
	w.eventually("mounts propagate below the root", func() bool {
		points, err := os.ReadFile("/proc/self/mountinfo")
		require.NoError(t, err)
		return isShared.Match(points)
	})
	w.put("volumes", volumesPod(host))
	w.until("the pod waits for its secret", func() error {
		if !strings.Contains(w.out.String(), `MountVolume.SetUp failed for volume "secret" : secret "web" not found`) {
			return fmt.Errorf("there is no such event")
		}
		return nil
	})
	put(secret("swordfish"), "secret.yaml") // and then it has it

	printed := func() map[string]string {
		last := map[string]string{}
		pod, ok := w.pods()["volumes"]
		if !ok {
			return last
		}
		data, err := os.ReadFile(w.logFile(pod, "main", 0))
		if err != nil {
			return last
		}
		for _, l := range parseLog(t, data[:strings.LastIndexByte(string(data), '\n')+1]) {
			if key, value, ok := strings.Cut(l.text, ": "); ok {
				last[key] = value
			}
		}
		return last
	}
	until := func(key, pattern string) {
		t.Helper()
		w.until(key+" is "+pattern, func() error {
			if got := printed()[key]; !regexp.MustCompile(pattern).MatchString(got) {
				return fmt.Errorf("%s is %q; all of it: %v", key, got, printed())
			}
			return nil
		})
	}
	id := ""
	w.until("the driver has published the volume", func() error {
		if in := driver.InUse(); len(in) == 1 {
			id = in[0]
			return os.WriteFile(filepath.Join(driver.Path(id), "hello"), []byte("from the driver"), 0o644)
		}
		return fmt.Errorf("in use: %v", driver.InUse())
	})
	until("ready", "yes")
	for key, want := range map[string]string{
		"disk":            "^2777 hello$",
		"disk-group":      "^4321$",
		"memory":          "^tmpfs 1024$",
		"cm":              "^hello 640 hello$",
		"cm-links":        `^\.\.data/greeting \.\.20$`,
		"secret":          "^swordfish 440 4321 tmpfs$",
		"downward":        `^app="web" 64$`,
		"projected":       "^hello swordfish volumes-node$",
		"host":            "^alive$",
		"part":            "^hello$",
		"env":             "^hello swordfish$",
		"read-only":       "^yes$",
		"mount-read-only": "^yes$",
	} {
		assert.Regexp(t, want, printed()[key], key)
	}
	until("now", "^hello swordfish hello hello$")
	until("csi", "^from the driver$")
	put(configMap("bye"), "web.yaml")
	put(secret("marlin"), "secret.yaml")
	until("now", "^bye marlin bye hello$") // a subPath keeps its content (vol-42)

	// The driver is replaced, and the agent is killed: the volume stays.
	w.kill()
	stop()
	stop = drives()
	w.start("--objects=" + objects)
	put(configMap("again"), "web.yaml")
	until("now", "^again marlin again hello$")

	uid := w.pods()["volumes"].UID
	w.take("volumes")
	w.until("nothing of the pod is left", func() error {
		if _, err := os.Lstat(filepath.Join(root, "pods", string(uid))); !os.IsNotExist(err) {
			return fmt.Errorf("its directory still exists (%v)", err)
		}
		if in := driver.InUse(); len(in) > 0 {
			return fmt.Errorf("the driver has %v", in)
		}
		return nil
	})
	for _, kept := range []string{filepath.Join(host, "canary"), filepath.Join(host, "by-the-pod"), filepath.Join(driver.Path(id), "by-the-pod")} {
		assert.FileExists(t, kept)
	}
	mounts, err := mount.New("").List()
	require.NoError(t, err)
	for _, m := range mounts {
		assert.False(t, strings.HasPrefix(m.Path, filepath.Join(root, "pods")+"/"), m.Path)
	}
}
