package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

const root = "github.com/kubeparts/kubeparts"

// A platform is an operating system and an architecture of Go.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// A program is released as archives and as an image, one also as packages.
type program struct {
	name string
	does string

	// dir is the directory of its package in the repository.
	dir string

	// module is the directory of its module. Programs of a module with replace directives are built
	// in it; the others as go install of the published module does.
	module    string
	replaces  bool
	platforms []platform

	// extra are further files of its archives by their paths in the repository.
	extra []string

	// user runs the image; "0" where the program needs root.
	user     string
	packaged bool
}

var (
	linux      = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	everywhere = append(slices.Clone(linux), platform{"darwin", "amd64"}, platform{"darwin", "arm64"}, platform{"windows", "amd64"})
)

// nonRoot is the user ID of images, as in the images of distroless.
const nonRoot = "65532"

var programs = []program{
	{name: "kubelet", does: "the complete node, with the kubelet's command line", dir: "examples/kubelet", module: "examples", platforms: linux, user: "0", packaged: true,
		extra: []string{"examples/kubelet/kubelet.service", "examples/kubelet/10-kubeadm.conf", "examples/kubelet/kubelet.yaml"}},
	{name: "agent", does: "pods of manifests, as processes or on a CRI runtime", dir: "examples/agent", module: "examples", platforms: everywhere, user: "0",
		extra: []string{"examples/agent/pods"}},
	{name: "hollow", does: "simulated nodes for a real API server", dir: "examples/hollow", module: "examples", platforms: linux, user: nonRoot},
	{name: "study", does: "policies compared by simulation, in shares", dir: "examples/study", module: "examples", platforms: everywhere, user: nonRoot},
	{name: "testcluster", does: "a cluster for tests in one program", dir: "kube/controllers/testcluster", module: "kube/controllers", replaces: true, platforms: everywhere, user: nonRoot},
	{name: "fakecri", does: "a CRI runtime in memory, at a socket", dir: "examples/fakecri", module: "examples", platforms: linux, user: nonRoot,
		extra: []string{"examples/fakecri/node.txt"}},
}

// modules are the directories of the released modules. A module comes after those that it requires.
var modules = []string{"", "kube", "kube/controllers", "kube/provider/virtualkubelet", "examples"}

// describe lists the programs for --help.
func describe() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, p := range programs {
		more := ""
		if p.packaged {
			more = "; deb, rpm"
		}
		fmt.Fprintf(w, "  %s\t%s\t%v%s\n", p.name, p.does, p.platforms, more)
	}
	_ = w.Flush()
	return text.String()
}

// selectPrograms returns the named programs, in the order of the table. No names mean all.
func selectPrograms(names string) ([]program, error) {
	if names == "" {
		return programs, nil
	}
	selected, remaining := []program{}, strings.Split(names, ",")
	for _, p := range programs {
		if i := slices.Index(remaining, p.name); i >= 0 {
			selected, remaining = append(selected, p), slices.Delete(remaining, i, i+1)
		}
	}
	if len(remaining) > 0 {
		return nil, fmt.Errorf("--programs=%s: no program %q; there are\n%s", names, remaining[0], describe())
	}
	return selected, nil
}

func parsePlatforms(list string) ([]platform, error) {
	if list == "" {
		return nil, nil
	}
	var parsed []platform
	for name := range strings.SplitSeq(list, ",") {
		os, arch, _ := strings.Cut(name, "/")
		p := platform{os, arch}
		if !slices.Contains(everywhere, p) {
			return nil, fmt.Errorf("--platforms=%s: want some of %v", list, everywhere)
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

// builds returns the platforms of a program that are selected.
func (o options) builds(p program) []platform {
	if len(o.platforms) == 0 {
		return p.platforms
	}
	return slices.DeleteFunc(slices.Clone(p.platforms), func(p platform) bool { return !slices.Contains(o.platforms, p) })
}
