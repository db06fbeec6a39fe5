// Package cli contains the shared code of the programs of this module: parsing of flags, progress
// messages, and the build of the complete node.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Parse reads flags. With --help it writes usage and the flags to out and returns
// flag.ErrHelp. It returns an error for unknown flags and for arguments, and prints nothing.
func Parse(fs *flag.FlagSet, args []string, usage string, out io.Writer) error {
	fs.Usage = func() {}
	fs.SetOutput(io.Discard)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(out)
		fmt.Fprint(out, usage)
		fs.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; see --help", err)
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", fs.Arg(0))
	}
	return nil
}
