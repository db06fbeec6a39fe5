//go:build linux

package kubeadm

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/images"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// The versions that kubeadm 1.37.2 runs.
const (
	pauseImage     = "registry.k8s.io/pause:3.10.2"
	etcdImage      = "registry.k8s.io/etcd:3.7.0-0"
	coreDNSVersion = "v1.14.6" // as in .ci/steps/machine.sh
	coreDNSImage   = "registry.k8s.io/coredns/coredns:" + coreDNSVersion
)

// agnhostImage is one of the images of the suite.
const agnhostImage = "registry.k8s.io/e2e-test-images/agnhost:2.66.1"

// kubernetesImage has all parts of Kubernetes, which are one program that its name selects; tags are the names that
// kubeadm uses.
const kubernetesImage = "kubeparts.test/kubernetes:1"

func tags() []string {
	tags := []string{etcdImage}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		tags = append(tags, "registry.k8s.io/"+name+":"+lab.KubernetesVersion)
	}
	return tags
}

// archives writes archives of the images of a cluster, and returns their files.
func archives(t *testing.T) []string {
	t.Helper()
	program, err := labenv.Cached("kubernetes-"+lab.KubernetesVersion, "kube-apiserver")
	require.NoError(t, err)
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	const bin = "usr/local/bin/"
	kubernetes := lab.Image{
		Ref: kubernetesImage, Env: []string{"PATH=/usr/local/bin:/usr/sbin"}, Files: []lab.File{
			{Path: "usr/", Mode: 0o755}, {Path: "usr/local/", Mode: 0o755}, {Path: bin, Mode: 0o755}, {Path: "tmp/", Mode: 0o1777}, {Path: "run/", Mode: 0o755},
			{Path: bin + "kube-apiserver", Mode: 0o755, Data: data},
		},
	}
	for _, name := range []string{"etcd", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		kubernetes.Files = append(kubernetes.Files, lab.File{Path: bin + name, Link: "kube-apiserver"})
	}
	kubernetes.Files = append(kubernetes.Files, iptables(t)...)
	dir := t.TempDir()
	pause, err := lab.PauseImage(dir)
	require.NoError(t, err)
	pause.Ref = pauseImage
	return writeArchives(t, dir, kubernetes, pause, coreDNS(t))
}

// suiteArchives writes archives of the images of the tests, and returns their files.
func suiteArchives(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	busybox, err := lab.BusyboxImage()
	require.NoError(t, err)
	used := []lab.Image{busybox}
	for img, err := range (images.Maker{Tools: suiteDirectory(t), Dir: dir}).Images(filepath.Join(suiteDirectory(t), suiteProgram)) {
		require.NoError(t, err)
		if usedBySuite(path.Base(img.Ref)) {
			used = append(used, img)
		}
	}
	require.True(t, slices.ContainsFunc(used, func(img lab.Image) bool { return img.Ref == agnhostImage }))
	return writeArchives(t, dir, used...)
}

// writeArchives writes an archive of each image to a directory, and returns their files.
func writeArchives(t *testing.T, dir string, all ...lab.Image) (files []string) {
	t.Helper()
	for _, img := range all {
		file, err := os.Create(filepath.Join(dir, strings.ReplaceAll(path.Base(img.Ref), ":", "-")+".tar"))
		require.NoError(t, err)
		require.NoError(t, img.WriteArchive(file))
		require.NoError(t, file.Close())
		files = append(files, file.Name())
	}
	return files
}

// coreDNS returns its image. Its user may listen at port 53 because containerd allows that to every user.
func coreDNS(t *testing.T) lab.Image {
	t.Helper()
	program, err := labenv.Cached("coredns-"+coreDNSVersion, "coredns")
	require.NoError(t, err)
	data, err := os.ReadFile(program)
	require.NoError(t, err, "bash .ci/run coredns builds it")
	return lab.Image{Ref: coreDNSImage, Entrypoint: []string{"/coredns"}, User: "65532:65532", Files: []lab.File{{Path: "coredns", Mode: 0o755, Data: data}}}
}

// iptables returns the program of this machine that kube-proxy calls, under its names, and its libraries.
func iptables(t *testing.T) []lab.File {
	t.Helper()
	const program = "/usr/sbin/xtables-nft-multi"
	paths, err := filepath.Glob("/usr/lib/*/xtables/*.so") // its matches and targets
	require.NoError(t, err)
	paths = append(paths, program)
	libraries, err := exec.Command("ldd", paths...).Output()
	require.NoError(t, err)
	paths = append(paths, regexp.MustCompile(`/\S+\.so[.\d]*\b`).FindAllString(string(libraries), -1)...)
	slices.Sort(paths)
	files := []lab.File{{Path: "usr/sbin/", Mode: 0o755}}
	made := map[string]bool{"/": true, "/usr/": true, "/usr/sbin/": true}
	for _, p := range slices.Compact(paths) {
		for i := range p {
			if dir := p[:i+1]; p[i] == '/' && !made[dir] {
				made[dir] = true
				files = append(files, lab.File{Path: dir[1:], Mode: 0o755})
			}
		}
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		files = append(files, lab.File{Path: p[1:], Mode: 0o755, Data: data})
	}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		files = append(files, lab.File{Path: "usr/sbin/" + name, Link: path.Base(program)})
	}
	return files
}
