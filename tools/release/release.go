package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// A release makes the files.
type release struct {
	options
	commit    commit
	work      string
	toolchain *toolchain
	licenses  *licenses
	license   file   // of kubeparts
	goVersion string // that has built the programs
	began     time.Time
}

func (r *release) make(ctx context.Context, changelog string) error {
	r.began = time.Now()
	r.progress("%s from commit %.12s into %s", r.version, r.commit.hash, r.out)
	tree := filepath.Join(r.work, "tree")
	if err := r.commit.export(ctx, tree); err != nil {
		return err
	}
	var err error
	if r.toolchain, err = newToolchain(ctx, tree, r.work, r.version); err != nil {
		return err
	}
	r.licenses = &licenses{toolchain: r.toolchain, read: map[string]license{}}
	if r.license, err = readFile("LICENSE", filepath.Join(tree, "LICENSE"), 0o644); err != nil {
		return err
	}
	for _, p := range r.programs {
		if err := r.program(ctx, tree, p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	notes, err := releaseNotes(changelog, r.version, false)
	if err != nil {
		return err
	}
	return r.summarize(notes)
}

// program makes the archives, the bills of materials, the image and the packages of a program.
func (r *release) program(ctx context.Context, tree string, p program) error {
	image := &imageBuild{program: p, name: r.registry + "/" + p.name + ":" + r.version, version: r.version, commit: r.commit.hash, at: r.commit.time}
	var extra []file
	for _, path := range p.extra {
		path = filepath.Join(tree, filepath.FromSlash(path))
		more, err := readTree(filepath.Dir(path), path)
		if err != nil {
			return err
		}
		extra = append(extra, more...)
	}
	for _, on := range r.builds(p) {
		name := archiveName(p, r.version, on)
		r.progress("%s", name)
		files, err := r.files(ctx, p, on, name)
		if err != nil {
			return err
		}
		if err := writeArchive(r.out, name, on, append(slices.Clone(files), extra...), r.commit.time); err != nil {
			return err
		}
		if on.os != "linux" {
			continue
		}
		if err := image.add(on, files); err != nil {
			return fmt.Errorf("image: %w", err)
		}
		if p.packaged {
			if err := r.packages(tree, on, append(slices.Clone(files), extra...)); err != nil {
				return err
			}
		}
	}
	if image.index == nil {
		return nil
	}
	return image.write(r.work, filepath.Join(r.out, p.name+"_"+r.version+"_oci.tar"))
}

// files builds a program, writes its bill of materials, and returns it with its licenses.
func (r *release) files(ctx context.Context, p program, on platform, name string) ([]file, error) {
	path, err := r.toolchain.build(ctx, p, on)
	if err != nil {
		return nil, err
	}
	executable, err := readFile(p.name+on.suffix(), path, 0o755)
	if err != nil {
		return nil, err
	}
	info, err := readBuildInfo(path)
	if err != nil {
		return nil, err
	}
	r.goVersion = info.GoVersion
	found, texts, err := r.licenses.of(ctx, info)
	if err != nil {
		return nil, err
	}
	sbom, err := bill(subject{name: p.name, file: name, version: r.version, content: executable.data, created: r.commit.time, licenses: found}, info)
	if err != nil {
		return nil, err
	}
	return []file{executable, r.license, {"THIRD_PARTY_LICENSES", 0o644, texts}}, r.write(name+".spdx.json", sbom)
}

func (r *release) packages(tree string, on platform, all []file) error {
	kubernetes, err := kubernetesVersion(tree)
	if err != nil {
		return err
	}
	b := &packageBuild{version: r.version, kubernetes: kubernetes, at: r.commit.time, files: map[string]file{}}
	for _, f := range all {
		b.files[f.name] = f
	}
	stage, err := os.MkdirTemp(r.work, "package")
	if err != nil {
		return err
	}
	for _, format := range []string{"deb", "rpm"} {
		name, err := b.write(format, on.arch, stage, r.out)
		if err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
		r.progress("%s", name)
	}
	return nil
}

var versionConstant = regexp.MustCompile(`(?m)^\s*KubernetesVersion\s*=\s*"v(\d+\.\d+\.\d+)`)

// kubernetesVersion returns the version of Kubernetes that the kubelet implements.
func kubernetesVersion(tree string) (string, error) {
	file := filepath.Join(tree, "runtime", "kubernetes.go")
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	m := versionConstant.FindSubmatch(source)
	if m == nil {
		return "", fmt.Errorf("no constant KubernetesVersion in %s", file)
	}
	return string(m[1]), nil
}

// summarize writes the notes, the provenance and the checksums.
func (r *release) summarize(notes string) error {
	if err := r.write("notes.md", []byte(notes)); err != nil {
		return err
	}
	sums, err := checksums(r.out)
	if err != nil {
		return err
	}
	statement, err := provenance(sums, r.version, r.commit.hash, r.goVersion)
	if err != nil {
		return err
	}
	if err := r.write("provenance.intoto.json", statement); err != nil {
		return err
	}
	if sums, err = checksums(r.out); err != nil {
		return err
	}
	r.progress("%d files and their checksums", len(sums))
	return r.write("SHA256SUMS", []byte(sumFile(sums)))
}

func (r *release) write(name string, data []byte) error {
	return create(filepath.Join(r.out, name), func(w io.Writer) error { _, err := w.Write(data); return err })
}

func (r *release) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}
