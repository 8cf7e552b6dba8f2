// Command compose loads a Compose file as Docker Compose does, fails if it is invalid, and prints the resolved model.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := load(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func load(path string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithOsEnv, cli.WithDefaultConfigPath)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	model, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(model)
	return err
}
