// Recording prints the recordings of a node that sim/record has written, such as those of
// examples/kubelet --record-dir. examples/replay replays them.
//
//	$ go run ./examples/recording /var/log/kubeparts-recordings
//	$ go run ./examples/recording --json FILE.kprec
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kubeparts/kubeparts/sim/record"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

const usage = `recording prints recordings of a node: files, and directories of files.

  recording [--json] PATH…

A damaged file is printed up to the damage.

Flags:
`

// run prints the files of the arguments.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("recording", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are reported once, without usage
	flags.Usage = func() {}
	asJSON := flags.Bool("json", false, "print each frame completely, as a line of JSON")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case flags.NArg() == 0:
		return errors.New("no file or directory; see --help")
	}
	paths, err := expand(flags.Args())
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	var failed error
	for _, path := range paths { // a damaged file does not hide those after it
		failed = errors.Join(failed, printFile(w, path, *asJSON))
	}
	return errors.Join(failed, w.Flush())
}

// printFile prints the frames of a file.
func printFile(w io.Writer, path string, asJSON bool) error {
	encoder := json.NewEncoder(w)
	for frame, err := range record.ReadFiles(path) {
		if err == nil && asJSON {
			err = encoder.Encode(frame)
		} else if err == nil {
			_, err = fmt.Fprintln(w, frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expand replaces directories by their recordings.
func expand(args []string) (paths []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		files := []string{arg}
		if info.IsDir() {
			if files, err = record.Files(arg); err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fmt.Errorf("%s: no recordings", arg)
			}
		}
		paths = append(paths, files...)
	}
	return paths, nil
}
