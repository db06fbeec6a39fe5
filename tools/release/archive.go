package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A file is a file of an archive, a package or an image.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}

// readFile reads a file, which has another name and mode in the archive.
func readFile(name, from string, mode fs.FileMode) (file, error) {
	data, err := os.ReadFile(from)
	return file{name, mode, data}, err
}

// readTree reads a file, or all files of a directory, in the order of their names, which are relative
// to the directory base.
func readTree(base, at string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(at, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(base, p)
		if err != nil {
			return err
		}
		f, err := readFile(filepath.ToSlash(below), p, 0o644)
		files = append(files, f)
		return err
	})
	return files, err
}

// writeArchive writes files below a directory of the archive's name: a zip file for Windows, otherwise
// a compressed tar file. Owners are root, and all files have one time.
func writeArchive(dir, name string, on platform, files []file, at time.Time) error {
	if on.os == "windows" {
		return create(filepath.Join(dir, name+".zip"), func(w io.Writer) error { return writeZip(w, name, files, at) })
	}
	return create(filepath.Join(dir, name+".tar.gz"), func(w io.Writer) error {
		compressed := gzip.NewWriter(w)
		return errors.Join(writeTar(compressed, name, files, at), compressed.Close())
	})
}

func writeTar(w io.Writer, prefix string, files []file, at time.Time) error {
	out := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: path.Join(prefix, f.name), Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if f.mode.IsDir() {
			h.Name, h.Typeflag = h.Name+"/", tar.TypeDir
			if f.mode&fs.ModeSticky != 0 {
				h.Mode |= 0o1000
			}
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if _, err := out.Write(f.data); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out.Close()
}

func writeZip(w io.Writer, prefix string, files []file, at time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(prefix, f.name), Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		entry, err := out.CreateHeader(h)
		if err == nil {
			_, err = entry.Write(f.data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return out.Close()
}

// create writes a file.
func create(path string, content func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}

// archiveName is the name of an archive without its ending, and of the directory in it.
func archiveName(p program, version string, on platform) string {
	return strings.Join([]string{p.name, version, on.os, on.arch}, "_")
}
