// Package cli is what the examples that people start have in common: it reads what they
// say, and tells them how far things are.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// Parse reads flags. With --help it writes usage and the flags to out and returns
// flag.ErrHelp; what is no flag, or none of these, is an error that says where to look.
// An error is told once, by who gets it.
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
