"""Reports: from the files of a study to tables, figures and a page. Reads files and knows no learner."""
