package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A toolchain builds programs of one version as `go install MODULE@VERSION` of the published modules
// does: from packed modules, so that neither the path of the repository nor a file that git ignores
// has an effect.
type toolchain struct {
	version string
	tree    string // the exported commit
	work    string
	env     []string
}

// newToolchain packs the modules of the exported tree into a file-system module proxy.
func newToolchain(ctx context.Context, tree, work, version string) (*toolchain, error) {
	t := &toolchain{version: version, tree: tree, work: work}
	proxy := filepath.Join(work, "proxy")
	err := command(ctx, filepath.Join(tree, "tools"), []string{"GOWORK=off", "GOFLAGS=-trimpath"}, "go", "run", "./goproxy", "-version", version, "-out", proxy, tree)
	if err != nil {
		return nil, err
	}
	shared, upstream, err := goEnv(ctx)
	if err != nil {
		return nil, err
	}
	cache := filepath.Join(work, "mod")
	if err := overlay(shared, cache, "", "cache", "cache/download", "cache/download/github.com", "github.com"); err != nil {
		return nil, err
	}
	t.env = []string{
		"GOWORK=off", "CGO_ENABLED=0", "GOBIN=", "GOPATH=" + filepath.Join(work, "go"), "GOMODCACHE=" + cache,
		"GOFLAGS=-trimpath -buildvcs=false -mod=mod -modcacherw", "GONOSUMDB=github.com/kubeparts/*", "GOPROXY=file://" + proxy + "," + upstream,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off",
	}
	return t, nil
}

// goEnv returns the module cache and the proxies of the user.
func goEnv(ctx context.Context) (cache, proxy string, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return "", "", fmt.Errorf("go env: %w", err)
	}
	cache, proxy, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return cache, proxy, os.MkdirAll(filepath.Join(cache, "cache", "download", "github.com"), 0o755)
}

// overlay makes a module cache that shares all modules with another one except those of kubeparts,
// which may have been packed from another commit there. Directories are made, everything else in the
// directories of the shared cache is a link to it.
func overlay(shared, dir string, directories ...string) error {
	own := map[string]bool{"github.com/kubeparts": true, "cache/download/github.com/kubeparts": true, "cache/lock": true}
	for _, d := range directories {
		own[d] = true
	}
	for _, d := range directories {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(shared, d))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if name := filepath.ToSlash(filepath.Join(d, e.Name())); !own[name] {
				if err := os.Symlink(filepath.Join(shared, name), filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// build builds a program and returns its path.
func (t *toolchain) build(ctx context.Context, p program, on platform) (string, error) {
	env := append([]string{"GOOS=" + on.os, "GOARCH=" + on.arch}, t.env...)
	if p.replaces {
		path := filepath.Join(t.work, "go", "bin", on.os+"_"+on.arch, p.name+on.suffix())
		module := filepath.Join(t.tree, p.module)
		return path, errors.Join(
			command(ctx, module, env, "go", "mod", "edit", "-dropreplace", root, "-dropreplace", root+"/kube"),
			command(ctx, module, env, "go", "build", "-ldflags", ldflags, "-o", path, "./"+strings.TrimPrefix(p.dir, p.module+"/")))
	}
	path := filepath.Join(t.work, "go", "bin", filepath.Base(p.dir)+on.suffix())
	if on.os != runtime.GOOS || on.arch != runtime.GOARCH {
		path = filepath.Join(filepath.Dir(path), on.os+"_"+on.arch, filepath.Base(path))
	}
	return path, command(ctx, t.work, env, "go", "install", "-ldflags", ldflags, root+"/"+p.dir+"@"+t.version)
}

// ldflags leave out the tables of debuggers. Stack traces and profiles do not need them.
const ldflags = "-s -w"

func (p platform) suffix() string {
	if p.os == "windows" {
		return ".exe"
	}
	return ""
}

// readBuildInfo reads what the go command records in a program.
func readBuildInfo(path string) (*buildinfo.BuildInfo, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("build information of %s: %w", path, err)
	}
	return info, nil
}

// moduleDir returns the directory of a module in the module cache.
func (t *toolchain) moduleDir(ctx context.Context, path, version string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir, cmd.Env = t.work, append(os.Environ(), t.env...)
	return downloaded(cmd)
}
