package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/kubeparts/kubeparts/kube/kubelet"
)

// setVersion handles the value of --version: it returns the text to print instead of
// running the kubelet, or "" if there is none. A version is the one that the node reports;
// it may differ from that of this program only after the patch number.
func (o *options) setVersion(value string) (printed string, err error) {
	switch value {
	case "":
		return "", nil
	case "true":
		return "Kubernetes " + kubelet.Version, nil
	case "raw":
		return fmt.Sprintf("%#v", buildVersion()), nil
	}
	is, err := version.ParseSemantic(value)
	if err != nil {
		return "", fmt.Errorf("--version=%s: %w", value, err)
	}
	own := version.MustParseSemantic(kubelet.Version)
	if is.Major() != own.Major() || is.Minor() != own.Minor() || is.Patch() != own.Patch() {
		return "", fmt.Errorf("--version=%s: want major, minor and patch of %s", value, kubelet.Version)
	}
	o.Cluster.Version = value
	return "", nil
}

// buildVersion returns the version, with the revision and the toolchain of this program.
func buildVersion() apiversion.Info {
	v := version.MustParseSemantic(kubelet.Version)
	info := apiversion.Info{
		Major: fmt.Sprint(v.Major()), Minor: fmt.Sprint(v.Minor()), GitVersion: kubelet.Version,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return info
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.GitCommit = s.Value
		case "vcs.time":
			info.BuildDate = s.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	return info
}
