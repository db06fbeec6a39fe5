package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packageName differs from the Kubernetes project's kubelet, so that neither upgrades the other.
const packageName = "kubeparts-kubelet"

// afterInstall makes systemd read the unit, also where systemd does not run, such as in a chroot. It
// does not start the kubelet: without kubeadm or a configuration there is nothing to run.
const afterInstall = "#!/bin/sh\nset -e\n[ ! -d /run/systemd/system ] || systemctl daemon-reload\n"

// beforeRemove stops the kubelet on a removal, not on an upgrade. Pods keep running.
const beforeRemove = "#!/bin/sh\nset -e\ncase \"$1\" in remove|0) [ ! -d /run/systemd/system ] || systemctl disable --now kubelet.service ;; esac\n"

// A packageBuild is a Debian and an RPM package of the kubelet.
type packageBuild struct {
	version    string // of kubeparts
	kubernetes string // that the kubelet implements, such as 1.37.2
	at         time.Time
	files      map[string]file // by their names in the archive
}

// contents are the files of the package, from a staging directory.
func (b *packageBuild) contents(stage string) (files.Contents, error) {
	var contents files.Contents
	add := func(name, destination, kind string) error {
		f, ok := b.files[name]
		if !ok {
			return fmt.Errorf("package: no file %s", name)
		}
		source := filepath.Join(stage, f.name)
		contents = append(contents, &files.Content{Source: source, Destination: destination, Type: kind, FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: b.at}})
		return os.WriteFile(source, f.data, 0o644)
	}
	for _, f := range [][3]string{
		{"kubelet", "/usr/bin/kubelet", ""},
		{"kubelet.service", "/usr/lib/systemd/system/kubelet.service", ""},
		// Not in the unit's directory: there it is a file of the package kubeadm.
		{"10-kubeadm.conf", "/usr/share/" + packageName + "/10-kubeadm.conf", ""},
		{"kubelet.yaml", "/etc/kubernetes/kubelet.yaml", files.TypeConfigNoReplace},
		{"LICENSE", "/usr/share/doc/" + packageName + "/copyright", ""},
		{"THIRD_PARTY_LICENSES", "/usr/share/doc/" + packageName + "/THIRD_PARTY_LICENSES", ""},
	} {
		if err := add(f[0], f[1], f[2]); err != nil {
			return nil, err
		}
	}
	return append(contents, &files.Content{Destination: "/etc/kubernetes/manifests", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: b.at}}), nil
}

// write writes a package of a format, deb or rpm, and returns its file name.
func (b *packageBuild) write(format, arch, stage, out string) (string, error) {
	contents, err := b.contents(stage)
	if err != nil {
		return "", err
	}
	after, before := filepath.Join(stage, "after"), filepath.Join(stage, "before")
	for path, text := range map[string]string{after: afterInstall, before: beforeRemove} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	provides := "kubelet (= " + b.kubernetes + ")"
	if format == "rpm" {
		provides = "kubelet = " + b.kubernetes
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: packageName, Arch: arch, Platform: "linux", Version: strings.TrimPrefix(b.version, "v"), Release: "1", Section: "admin", Priority: "optional",
		Maintainer: "The kubeparts maintainers <https://" + root + ">", Vendor: "kubeparts", Homepage: "https://" + root, License: "Apache-2.0",
		Description: "Kubernetes node agent built of the kubeparts packages\nIt takes the place of the kubelet " + b.kubernetes + ", with its command line and configuration.",
		MTime:       b.at, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Conflicts: []string{"kubelet"}, Replaces: []string{"kubelet"}, Provides: []string{provides},
			Recommends: []string{"containerd"}, Contents: contents,
			Scripts: nfpm.Scripts{PostInstall: after, PreRemove: before},
			RPM:     nfpm.RPM{BuildHost: "kubeparts", Summary: "Kubernetes node agent built of the kubeparts packages"},
		},
	})
	if format == "rpm" {
		info.Replaces = nil // Obsoletes in RPM: an update of the system would install this package
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return "", err
	}
	name := packager.ConventionalFileName(info)
	return name, create(filepath.Join(out, name), func(w io.Writer) error { return packager.Package(info, w) })
}
